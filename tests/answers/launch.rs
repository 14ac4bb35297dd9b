//! The main job through a worker in this process, against the provider's own ledger.

use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_tests::stage::{ONE_CLASS, Stage};

fn scenario() -> Scenario {
    Scenario { rate_per_s: 10_000.0, burst: 1_000, ..Scenario::default() }
}

#[tokio::test]
async fn every_job_is_delivered_once() {
    let stage = Stage::new(scenario(), ONE_CLASS).await;
    let worker = stage.worker();
    stage.push("bulk", 200).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 200);
    let summary = stage.ledger().summary;
    assert_eq!((summary.accepted, summary.delivered, summary.duplicates), (200, 200, 0));
    worker.stopped().await;
}

#[tokio::test]
async fn a_throttled_launch_loses_and_doubles_nothing() {
    let throttling = Scenario {
        rate_per_s: 200.0,
        burst: 20,
        unanswered_share: 0.03,
        retry_after_s: 1.0,
        ..Scenario::default()
    };
    let stage = Stage::new(throttling, ONE_CLASS).await;
    let worker = stage.worker();
    stage.push("bulk", 300).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 300, "{depths:?}");
    let summary = stage.ledger().summary;
    assert!(summary.throttled >= 1 && summary.unanswered >= 1, "{summary:?}");
    assert_eq!((summary.accepted, summary.duplicates), (300, 0));
    worker.stopped().await;
}
