//! Nobody can tell whether it was accepted: what happens depends on whether the provider recognises a repeat, and
//! where it does not, on what the class prefers.

use crate::support::*;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::ErrorAnswer;
use paceline_store::Store;
use paceline_tests::stage::Stage;

/// Takes every message, answers nothing, and recognises no repeat.
fn mute() -> Scenario {
    Scenario { unanswered_share: 0.5, hang_share: 0.5, deduplicates: false, ..wide() }
}

/// Of a provider that does not deduplicate, with a short patience.
fn settings(on_ambiguous: &str) -> String {
    let class = format!("[class.bulk]\nmax_spent = 3\non_ambiguous = \"{on_ambiguous}\"");
    one_class(&[
        ("deduplicates = true", "deduplicates = false"),
        ("first_byte_timeout_ms = 1500", "first_byte_timeout_ms = 300"),
        ("[class.bulk]", &class),
    ])
}

#[tokio::test]
async fn asked_a_person_decides_and_nothing_is_sent_twice() {
    let mut stage = Stage::new(mute(), &settings("ask")).await;
    without_outages(&mut stage);
    stage.push("bulk", 40).await;
    let workers = [stage.worker(), stage.worker()];
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Unconfirmed), 40, "{depths:?}");
    let ledger = stage.ledger();
    assert_eq!((ledger.summary.delivered, ledger.summary.duplicates), (40, 0), "{:?}", ledger.summary);
    assert!(ledger.entries.iter().all(|entry| (entry.arrivals, entry.delivered) == (1, 1)));
    let stored = stage.job("bulk", "bulk:0").await;
    assert!(
        job_of(&stored).flags.ambiguous && ["reset", "first_byte"].contains(&last(&stored).code.as_str())
    );
    for worker in workers {
        worker.stopped().await;
    }
}

/// The hold of an outage changes nothing about it: probes are jobs too.
#[tokio::test]
async fn a_probe_that_nobody_answers_is_not_sent_twice_either() {
    let mut stage = Stage::new(mute(), &settings("ask")).await;
    let class = stage.config.classes.values_mut().next().unwrap();
    (class.concurrency, class.policy.trips.outage_probe_ms) = (1, 20);
    class.policy.trips.outage_probe_cap_ms = 40;
    stage.push("bulk", 12).await;
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Unconfirmed), 12, "{depths:?}");
    assert_eq!((stage.ledger().summary.delivered, stage.ledger().summary.duplicates), (12, 0));
    worker.stopped().await;
}

#[tokio::test]
async fn told_to_retry_it_is_delivered_again_but_never_beyond_the_cap() {
    let mut stage = Stage::new(mute(), &settings("retry")).await;
    without_outages(&mut stage);
    stage.push("bulk", 20).await;
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Deferred), 20, "{depths:?}");
    let ledger = stage.ledger();
    assert!(ledger.entries.iter().all(|entry| entry.delivered == 3), "{:?}", ledger.summary);
    assert_eq!(ledger.entries.len(), 20, "every attempt carries the job's own send id");
    worker.stopped().await;
}

#[tokio::test]
async fn told_to_retry_one_acceptance_is_enough() {
    let half = Scenario { unanswered_share: 0.5, hang_share: 0.0, ..mute() };
    let mut stage = Stage::new(half, &settings("retry").replace("max_spent = 3", "max_spent = 30")).await;
    without_outages(&mut stage);
    stage.push("bulk", 40).await;
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 40, "{depths:?}");
    let summary = stage.ledger().summary;
    assert_eq!(summary.delivered, 40 + summary.duplicates);
    assert_eq!(summary.unanswered, summary.duplicates, "each repeat follows a silence: {summary:?}");
    worker.stopped().await;
}

/// The same silence before a provider that does recognise a repeat: everything is delivered, once.
#[tokio::test]
async fn where_the_provider_recognises_repeats_silence_costs_nothing() {
    let half = Scenario { unanswered_share: 0.4, hang_share: 0.1, deduplicates: true, ..mute() };
    let deduplicating = settings("ask").replace("deduplicates = false", "deduplicates = true");
    let mut stage = Stage::new(half, &deduplicating.replace("max_spent = 3", "max_spent = 30")).await;
    without_outages(&mut stage);
    stage.push("bulk", 60).await;
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 60, "{depths:?}");
    let summary = stage.ledger().summary;
    assert_eq!((summary.delivered, summary.duplicates), (60, 0), "{summary:?}");
    assert!(summary.repeats_deduplicated > 0);
    worker.stopped().await;
}

/// A 500 whose message went out all the same is what "ask" is for: a person decides, and a refusal that proves that
/// nothing was sent does not end there.
#[tokio::test]
async fn only_what_may_have_gone_out_asks_a_person() {
    let errors = vec![
        ErrorAnswer { share: 0.3, delivered: true, ..ErrorAnswer::new(500) },
        ErrorAnswer { share: 0.3, ..ErrorAnswer::new(503) },
    ];
    let scenario = Scenario { errors, deduplicates: false, ..wide() };
    let mut stage = Stage::new(scenario, &settings("ask").replace("max_spent = 3", "max_spent = 30")).await;
    without_outages(&mut stage);
    stage.push("bulk", 60).await;
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted) + depths.of(State::Unconfirmed), 60, "{depths:?}");
    assert!(depths.of(State::Unconfirmed) > 0, "{depths:?}");
    let summary = stage.ledger().summary;
    assert_eq!((summary.delivered, summary.duplicates), (60, 0), "{summary:?}");
    let listed =
        stage.store.list(&stage.class("bulk"), State::Unconfirmed, &Default::default(), 60).await.unwrap();
    for listed in listed {
        assert_eq!(last(&stage.job("bulk", &listed.key).await).code, "500");
    }
    worker.stopped().await;
}
