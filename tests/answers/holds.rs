//! What the answers of some jobs do to all: a sender that is refused, spent, failing or told to wait falls silent.

use crate::support::*;
use paceline_core::State;
use paceline_core::decide::HoldCause;
use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::ErrorAnswer;
use paceline_store::{Held, ReplayPace, Store};
use paceline_tests::peer::{Act, Gate, Peer};
use paceline_tests::stage::Stage;
use std::time::Duration;

/// On [`holds`]' list.
const CLASS: usize = 0;
const CREDENTIAL: usize = 1;

fn always(answer: ErrorAnswer) -> Scenario {
    Scenario { always: Some(answer), ..wide() }
}

fn slots(n: usize) -> String {
    let concurrency = format!("[class.bulk]\nconcurrency = {n}");
    one_class(&[("[class.bulk]", &concurrency)])
}

async fn lift(stage: &Stage, on: usize) {
    let key = paceline_tests::store::name("bulk-key");
    let held = if on == CLASS { Held::Class } else { Held::Budget(&key) };
    stage.store.hold(&stage.class("bulk"), held, None, None, "ada").await.expect("redis runs");
}

/// A key that nobody accepts: every answer is 401.
fn locked_out() -> Scenario {
    Scenario { accept_keys: Some(vec!["another".into()]), ..wide() }
}

#[tokio::test]
async fn a_refused_key_burns_three_jobs_and_a_person_gets_all_of_them_back() {
    let stage = Stage::new(locked_out(), &slots(10)).await;
    stage.push("bulk", 120).await;
    let workers = [stage.worker(), stage.worker()];
    await_hold(&stage, "bulk", CREDENTIAL, HoldCause::Suspect).await;
    stage.await_count("bulk", State::Failed, 3).await;
    // What was in flight comes back; the hold is a minute long.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let depths = stage.depths("bulk").await;
    assert_eq!((depths.of(State::Failed), depths.waiting()), (3, 117), "{depths:?}");
    assert!(stage.ledger().summary.refused <= 3 + 20, "{:?}", stage.ledger().summary);

    stage.sandbox.set_scenario(wide()).unwrap();
    lift(&stage, CREDENTIAL).await;
    stage.await_count("bulk", State::Submitted, 117).await;
    replay_failed(&stage, 3).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 120, "{depths:?}");
    assert_eq!((stage.ledger().summary.delivered, stage.ledger().summary.duplicates), (120, 0));
    for worker in workers {
        worker.stopped().await;
    }
}

async fn replay_failed(stage: &Stage, n: usize) {
    let class = stage.class("bulk");
    let failed = stage.store.list(&class, State::Failed, &Default::default(), 100).await.expect("redis runs");
    let jobs: Vec<(String, State)> = failed.into_iter().map(|job| (job.key, State::Failed)).collect();
    assert_eq!(jobs.len(), n);
    let replayed =
        stage.store.replay(&class, ReplayPace { interval_ms: 1.0 }, &jobs).await.expect("redis runs");
    assert!(replayed.iter().all(|word| *word == paceline_store::Replayed::Replayed), "{replayed:?}");
}

#[tokio::test]
async fn a_mended_key_is_found_out_by_a_probe() {
    let mut stage = Stage::new(locked_out(), &slots(4)).await;
    let class = stage.config.classes.values_mut().next().unwrap();
    class.policy.trips.suspect_probe_ms = 200;
    stage.push("bulk", 60).await;
    let worker = stage.worker();
    await_hold(&stage, "bulk", CREDENTIAL, HoldCause::Suspect).await;
    // Probes go and come back, and burn nothing.
    let before = stage.ledger().summary.refused;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let refused = stage.ledger().summary.refused - before;
    assert!((1..=4 + 5).contains(&refused), "{refused} probes in 0.7 s");
    assert_eq!(stage.depths("bulk").await.of(State::Failed), 3);

    stage.sandbox.set_scenario(wide()).unwrap();
    stage.await_count("bulk", State::Submitted, 57).await;
    assert_eq!(holds(&stage, "bulk").await, [None, None]);
    worker.stopped().await;
}

#[tokio::test]
async fn twenty_terminal_answers_in_a_row_hold_the_class() {
    let stage = Stage::new(always(ErrorAnswer::new(400)), &slots(4)).await;
    stage.push("bulk", 100).await;
    let worker = stage.worker();
    await_hold(&stage, "bulk", CLASS, HoldCause::Suspect).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let depths = stage.depths("bulk").await;
    assert!((20..20 + 4).contains(&depths.of(State::Failed)), "{depths:?}");
    assert_eq!(depths.of(State::Failed) + depths.waiting(), 100, "{depths:?}");
    assert_eq!(stage.ledger().summary.requests, depths.of(State::Failed), "nothing goes through the hold");

    stage.sandbox.set_scenario(wide()).unwrap();
    lift(&stage, CLASS).await;
    stage.await_count("bulk", State::Submitted, depths.waiting()).await;
    worker.stopped().await;
}

/// A few bad addresses among good ones are no reason to stop.
#[tokio::test]
async fn terminal_answers_between_acceptances_hold_nobody() {
    let bad = ErrorAnswer { share: 0.4, ..ErrorAnswer::new(422) };
    let stage = Stage::new(Scenario { errors: vec![bad], ..wide() }, &slots(4)).await;
    stage.push("bulk", 150).await;
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    let summary = stage.ledger().summary;
    assert_eq!((depths.of(State::Submitted), depths.of(State::Failed)), (summary.accepted, summary.refused));
    assert_eq!(summary.requests, 150, "each was tried once");
    worker.stopped().await;
}

#[tokio::test]
async fn an_outage_lets_single_probes_through_until_one_is_accepted() {
    let up = Gate::default();
    let is_up = up.clone();
    let peer = Peer::start(move |_| if is_up.is_open() { Act::accept() } else { Act::status(503) }).await;
    let mut stage = before(&peer, &slots(1)).await;
    let class = stage.config.classes.values_mut().next().unwrap();
    class.policy.trips.outage_probe_ms = 100;
    stage.push("bulk", 50).await;
    let worker = stage.worker();
    await_hold(&stage, "bulk", CREDENTIAL, HoldCause::Outage).await;
    await_heard(&peer, 5 + 4).await;
    up.open();
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 50, "{depths:?}");
    assert_eq!(holds(&stage, "bulk").await, [None, None]);

    // One slot: exactly five opened it, and each probe came no sooner than the one before allowed.
    let heard = peer.heard();
    for (probe, interval_ms) in [(5, 100), (6, 200), (7, 400), (8, 800)] {
        let gap = heard[probe].at - heard[probe - 1].at;
        assert!(gap >= Duration::from_millis(interval_ms - 5), "probe {probe} after {gap:?}");
    }
    let mut spent = 0;
    for i in 0..50 {
        spent += u32::from(job_of(&stage.job("bulk", &format!("bulk:{i}")).await).counters.spent);
    }
    assert_eq!(spent, 5, "failed probes spend nothing");
    worker.stopped().await;
}

/// However many slots and workers there are: one request per interval finds out for all.
#[tokio::test]
async fn an_outage_lets_one_probe_through_at_a_time() {
    let peer = Peer::start(|_| Act::Reset).await;
    let mut stage = before(&peer, &slots(8)).await;
    let class = stage.config.classes.values_mut().next().unwrap();
    (class.policy.trips.outage_probe_ms, class.policy.trips.outage_probe_cap_ms) = (100, 100);
    stage.push("bulk", 60).await;
    let workers = [stage.worker(), stage.worker()];
    await_hold(&stage, "bulk", CREDENTIAL, HoldCause::Outage).await;
    // What was under way when the hold came has ended by now.
    while stage.depths("bulk").await.of(State::InFlight) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = peer.heard().len();
    assert!(before <= 4 + 2 * 8, "four in a row, and what was in flight with the fifth: {before}");
    await_heard(&peer, before + 6).await;
    let heard = peer.heard();
    for pair in heard[before..].windows(2) {
        let gap = pair[1].at - pair[0].at;
        assert!(gap >= Duration::from_millis(95), "two probes within {gap:?}");
    }
    let depths = stage.depths("bulk").await;
    assert_eq!(depths.waiting() + depths.of(State::InFlight), 60, "nothing ends for it: {depths:?}");
    for worker in workers {
        worker.stopped().await;
    }
}

#[tokio::test]
async fn a_spent_quota_holds_and_spends_nothing() {
    let stage = Stage::new(always(ErrorAnswer::new(402)), &slots(4)).await;
    stage.push("bulk", 60).await;
    let worker = stage.worker();
    await_hold(&stage, "bulk", CREDENTIAL, HoldCause::Quota).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (depths, summary) = (stage.depths("bulk").await, stage.ledger().summary);
    assert_eq!(depths.waiting(), 60, "{depths:?}");
    assert!(summary.requests <= 4, "only what was under way: {summary:?}");
    let tried =
        stage.store.list(&stage.class("bulk"), State::Pending, &Default::default(), 60).await.unwrap();
    assert!(!tried.is_empty());
    for listed in tried {
        let counters = job_of(&stage.job("bulk", &listed.key).await).counters;
        assert_eq!((counters.spent, counters.throttles), (0, 0), "{listed:?}");
    }
    stage.sandbox.set_scenario(wide()).unwrap();
    lift(&stage, CREDENTIAL).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 60, "{depths:?}");
    worker.stopped().await;
}

/// Two classes on one key: what one is told counts for both.
const SHARED: (&str, &str) =
    ("[class.bulk]", "[class.other]\ncredential = \"bulk-key\"\ngroup = \"g\"\n[class.bulk]\ngroup = \"g\"");

#[tokio::test]
async fn a_named_wait_silences_everything_that_leaves_with_that_key() {
    let throttle = ErrorAnswer { retry_after: Some("2".into()), ..ErrorAnswer::new(429) };
    let stage = Stage::new(always(throttle), &one_class(&[SHARED])).await;
    let workers = [stage.worker(), stage.worker()];
    stage.push("bulk", 1).await;
    await_hold(&stage, "bulk", CREDENTIAL, HoldCause::RetryAfter).await;
    stage.sandbox.set_scenario(wide()).unwrap();
    let first = stage.ledger().entries[0].clone();
    stage.push("other", 30).await;
    stage.store.push(&stage.class("bulk"), &[paceline_tests::store::job("late")]).await.unwrap();
    for class in ["bulk", "other"] {
        stage.await_drained(class).await;
    }
    let ledger = stage.ledger();
    assert_eq!((ledger.summary.delivered, ledger.summary.requests), (32, 33), "{:?}", ledger.summary);
    for entry in &ledger.entries {
        let waited_us = entry.last_arrived_us - first.first_arrived_us;
        assert!(waited_us >= 2_000_000, "{} came after {waited_us} µs", entry.send_id);
    }
    for worker in workers {
        worker.stopped().await;
    }
}
