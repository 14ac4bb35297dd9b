//! What the provider sees of our limits, with one worker or many; and that a class which is stuck delays no other.

use crate::support::*;
use paceline_core::State;
use paceline_rehearsal::{Ledger, Scenario};
use paceline_tests::peer::{Act, Gate, Peer};
use paceline_tests::stage::Stage;
use std::time::Duration;

const RATE: usize = 100;
/// A tenth below the configured 20.
const BURST_IN_FORCE: usize = 18;
/// Jobs enough for two seconds: without a limit they would all leave within one, even on a busy machine.
const JOBS: usize = 200;
/// What a busy machine may bunch up on the wire: 0.3 s of the rate.
const COMPRESSION: usize = 30;

async fn rate_with(workers: usize) {
    let settings = one_class(&[("rate = \"10000/s\"", "rate = \"100/s\""), ("burst = 1000", "burst = 20")]);
    let stage = Stage::new(Scenario { latency_ms: 20, ..wide() }, &settings).await;
    let workers: Vec<_> = (0..workers).map(|_| stage.worker()).collect();
    stage.push("bulk", JOBS).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), JOBS as u64, "{depths:?}");
    let ledger = stage.ledger();
    assert_eq!(ledger.summary.requests, JOBS as u64);
    let most = most_within(&ledger, Duration::from_secs(1));
    assert!(most <= BURST_IN_FORCE + RATE + COMPRESSION, "{most} requests within one second");
    for worker in workers {
        worker.stopped().await;
    }
}

/// The most first arrivals in any window of that length.
fn most_within(ledger: &Ledger, window: Duration) -> usize {
    let mut arrivals: Vec<u64> = ledger.entries.iter().map(|entry| entry.first_arrived_us).collect();
    arrivals.sort_unstable();
    let window_us = window.as_micros() as u64;
    let within = |from: &u64| arrivals.partition_point(|at| at - from.min(at) < window_us);
    arrivals.iter().enumerate().map(|(i, from)| within(from) - i).max().unwrap_or(0)
}

#[tokio::test]
async fn one_worker_keeps_the_rate() {
    rate_with(1).await;
}

#[tokio::test]
async fn two_workers_keep_the_same_rate() {
    rate_with(2).await;
}

/// failures 70: from the first window on, with any number of them.
#[tokio::test]
async fn ten_workers_keep_the_same_rate() {
    rate_with(10).await;
}

/// Two classes share an account; both together keep its rate.
#[tokio::test]
async fn two_credentials_of_one_account_keep_its_rate_together() {
    let shared = ["a", "b"].map(|class| format!("account = \"acme\"\n[class.{class}]\ngroup = \"acme\""));
    let settings = changed(&lanes(&["a", "b"]), &[("[class.a]", &shared[0]), ("[class.b]", &shared[1])]);
    let settings = settings + "[account.acme]\nrate = \"100/s\"\nburst = 20\n";
    let stage = Stage::new(wide(), &settings).await;
    let workers = [stage.worker(), stage.worker()];
    for class in ["a", "b"] {
        stage.push(class, JOBS / 2).await;
    }
    for class in ["a", "b"] {
        assert_eq!(stage.await_drained(class).await.of(State::Submitted), JOBS as u64 / 2);
    }
    let most = most_within(&stage.ledger(), Duration::from_secs(1));
    assert!(most <= BURST_IN_FORCE + RATE + COMPRESSION, "{most} requests within one second");
    for worker in workers {
        worker.stopped().await;
    }
}

#[tokio::test]
async fn two_workers_never_have_more_in_flight_than_the_budget_allows() {
    let peer = Peer::start(|_| Act::After(Duration::from_millis(30), Box::new(Act::accept()))).await;
    let limit = [("[credential.bulk-key]", "[credential.bulk-key]\nmax_in_flight = 5")];
    let stage = before(&peer, &one_class(&limit)).await;
    let workers = [stage.worker(), stage.worker()];
    stage.push("bulk", 100).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!((depths.of(State::Submitted), peer.heard().len()), (100, 100), "{depths:?}");
    assert_eq!(peer.most_at_once(), 5, "no more, and no less where so many wait");
    for worker in workers {
        worker.stopped().await;
    }
}

#[tokio::test]
async fn no_process_has_more_in_flight_than_its_slots() {
    let peer = Peer::start(|_| Act::After(Duration::from_millis(30), Box::new(Act::accept()))).await;
    let stage = before(&peer, &one_class(&[("[class.bulk]", "[class.bulk]\nconcurrency = 4")])).await;
    let worker = stage.worker();
    stage.push("bulk", 60).await;
    stage.await_drained("bulk").await;
    assert_eq!((peer.most_at_once(), peer.heard().len()), (4, 60));
    worker.stopped().await;
}

/// A provider that hangs for one class, and the other class in the same process.
#[tokio::test]
async fn a_stuck_class_delays_no_other() {
    let gate = Gate::default();
    let shut = gate.clone();
    let peer = Peer::start(move |heard| match heard.path.as_str() {
        "/stuck" => Act::When(shut.clone(), Box::new(Act::accept())),
        _ => Act::accept(),
    })
    .await;
    let stuck = "[class.stuck]\nconcurrency = 4\npath = \"/stuck\"";
    let patient =
        [("= 1500", "= 60000"), ("deadline_ms = 2000", "deadline_ms = 60000"), ("[class.stuck]", stuck)];
    let settings = changed(&lanes(&["stuck", "well"]), &patient).replacen("path = \"/v1/send\"\n", "", 1);
    let stage = before(&peer, &settings).await;
    stage.push("stuck", 50).await;
    let worker = stage.worker();
    stage.await_count("stuck", State::InFlight, 4).await;
    stage.push("well", 300).await;
    let depths = stage.await_drained("well").await;
    assert_eq!(depths.of(State::Submitted), 300, "{depths:?}");
    let depths = stage.depths("stuck").await;
    assert_eq!((depths.of(State::InFlight), depths.of(State::Queued)), (4, 46), "still stuck: {depths:?}");
    gate.open();
    assert_eq!(stage.await_drained("stuck").await.of(State::Submitted), 50);
    worker.stopped().await;
}
