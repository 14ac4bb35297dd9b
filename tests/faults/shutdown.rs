//! The end of a worker: failures 52. Twenty sends that do not fit the grace, and every way to end them.

use crate::killed::ended;
use crate::support::*;
use nix::sys::signal::Signal;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_tests::stage::{ONE_CLASS, Process, Stage};

/// Twenty of thirty sends hang for 40 s, ten jobs wait, and the grace is what the test says.
async fn twenty_hang(deduplicates: bool, grace_ms: u64, more: &str) -> (Stage, Process, Tally) {
    let scenario = Scenario { hang_share: 1.0, hang_ms: 40_000, deduplicates, ..open_door() };
    let settings = with_class(&format!("concurrency = 20\n{more}"))
        .replace("deadline_ms = 2000", "deadline_ms = 60000")
        .replace("first_byte_timeout_ms = 1500", "first_byte_timeout_ms = 60000")
        .replace("grace_ms = 3000", &format!("grace_ms = {grace_ms}"));
    let settings = if deduplicates { settings } else { forgetful(&settings) };
    let stage = Stage::new(scenario, &settings).await;
    stage.push(BULK, 30).await;
    let tally = Tally::of(&stage, 30);
    let worker = stage.process();
    await_requests(&stage, 20).await;
    (stage, worker, tally)
}

#[tokio::test]
async fn what_does_not_fit_the_grace_is_handed_back_before_it_ends() {
    let (stage, worker, tally) = twenty_hang(true, 500, "max_spent = 1").await;
    worker.signal(Signal::SIGTERM);
    assert!(ended(worker).await, "a bounded drain is a good end");
    let depths = stage.depths(BULK).await;
    assert_eq!((depths.of(State::Pending), depths.of(State::Queued)), (20, 10), "{depths:?}");
    assert!(
        depths.holds.iter().all(Option::is_none),
        "a deploy says nothing about the provider: {:?}",
        depths.holds
    );
    for job in jobs_in(&stage, State::Pending).await {
        assert_eq!((job.counters.spent, job.counters.lapses), (0, 0), "a deploy is not the job's failure");
        assert!(job.flags.ambiguous, "its request had left");
    }
    assert_eq!(stage.ledger().summary.requests, 20, "after the signal nothing more is claimed");
    // The next worker finds everything, at once.
    stage.sandbox.set_scenario(open_door()).expect("it is valid");
    let _next = stage.process();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 30, "{depths:?}");
    assert_delivered_once(&stage, 30);
    tally.was_right().await;
}

#[tokio::test]
async fn where_nobody_deduplicates_what_was_cut_short_waits_for_a_person() {
    let (stage, worker, tally) = twenty_hang(false, 500, "").await;
    worker.signal(Signal::SIGTERM);
    assert!(ended(worker).await);
    let depths = stage.depths(BULK).await;
    assert_eq!((depths.of(State::Unconfirmed), depths.of(State::Queued)), (20, 10), "{depths:?}");
    let reasons = jobs_in(&stage, State::Unconfirmed).await.into_iter();
    let mut reasons = reasons.map(|job| job.history.last().expect("it was sent").reason.clone());
    assert!(reasons.all(|reason| reason == "shutdown"));
    assert_delivered_once(&stage, 20);
    tally.was_right().await;
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_the_grace() {
    // Ten minutes: only the second signal can end it within the patience of this test.
    let (stage, worker, tally) = twenty_hang(true, 600_000, "").await;
    worker.signal(Signal::SIGTERM);
    worker.signal(Signal::SIGTERM);
    until("both are heard", async || {
        // Two at the same moment are one to the kernel; a person who presses twice is slower than that.
        worker.signal(Signal::SIGTERM);
        stage.depths(BULK).await.of(State::Pending) == 20
    })
    .await;
    assert!(ended(worker).await);
    let depths = stage.depths(BULK).await;
    assert_eq!((depths.of(State::Pending), depths.of(State::Queued)), (20, 10), "{depths:?}");
    tally.was_right().await;
}

#[tokio::test]
async fn a_platform_that_kills_after_its_own_patience_loses_nothing() {
    // The platform's patience is shorter than the grace: SIGTERM, then SIGKILL.
    let scenario = Scenario { hang_share: 1.0, hang_ms: 40_000, ..open_door() };
    let stage = Stage::new(scenario, &with_class("concurrency = 20")).await;
    stage.push(BULK, 30).await;
    let tally = Tally::of(&stage, 30);
    let worker = stage.process();
    await_requests(&stage, 20).await;
    worker.signal(Signal::SIGTERM);
    worker.kill();
    let depths = stage.depths(BULK).await;
    assert_eq!((depths.of(State::InFlight), depths.of(State::Queued)), (20, 10), "{depths:?}");
    stage.sandbox.set_scenario(open_door()).expect("it is valid");
    let _next = stage.process();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 30, "{depths:?}");
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.counters.spent == 0));
    assert_delivered_once(&stage, 30);
    tally.was_right().await;
}

/// In this process: what fits the grace is finished, and the answer is written.
#[tokio::test]
async fn what_fits_the_grace_is_finished() {
    let stage = Stage::new(slow(500), ONE_CLASS).await;
    stage.push(BULK, 20).await;
    let worker = stage.worker();
    await_requests(&stage, 20).await;
    worker.tell_to_stop();
    push_until_taken(&stage, &stage.store, 20..30).await;
    worker.stopped().await;
    let depths = stage.depths(BULK).await;
    assert_eq!((depths.of(State::Submitted), depths.of(State::Queued)), (20, 10), "{depths:?}");
    assert_none_spent(&stage, State::Submitted).await;
    assert_delivered_once(&stage, 20);
}
