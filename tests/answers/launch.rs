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

/// What `paceline rehearse` promises to machines, and to people: nothing lost, doubled or misfiled.
#[tokio::test]
async fn a_rehearsal_tells_every_figure_of_both_senders() {
    let mut command = tokio::process::Command::new(paceline_tests::binary::paceline());
    command.args([
        "rehearse",
        "--json",
        "--bulk",
        "300",
        "--rate",
        "200",
        "--burst",
        "50",
        "--transactional-rate",
        "5",
    ]);
    command.args([
        "--multiplier",
        "1",
        "--unanswered",
        "2%",
        "--workers",
        "2",
        "--kill-worker-at",
        "0.5s",
        "--seed",
        "3",
    ]);
    let output = command.kill_on_drop(true).output().await.expect("it runs");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let flat = [
        "attempts",
        "throttled_share",
        "terminal_misfiled",
        "accepted",
        "lost",
        "duplicates",
        "drain_s",
        "physical_s",
        "drain_ratio",
        "holds",
        "utilisation",
        "transactional_p50_ms",
        "transactional_p99_ms",
        "transactional_p99_outside_holds_ms",
    ];
    for (sender, key) in ["paceline", "naive"].into_iter().flat_map(|sender| flat.map(|key| (sender, key))) {
        assert!(told[sender][key].is_number(), "{sender}.{key} of {told}");
    }
    for key in ["lost", "duplicates", "terminal_misfiled"] {
        assert_eq!(told["paceline"][key], 0, "{key} of {told}");
    }
    assert!(told["paceline"]["accepted"].as_u64().is_some_and(|accepted| accepted >= 300), "{told}");
    assert!(output.status.success(), "{told}");
}
