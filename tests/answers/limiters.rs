//! The pace law against limiters that others wrote, and against the sandbox at another limit than we believe.

use crate::support::*;
use paceline_core::State;
use paceline_rehearsal::{Ledger, Sandbox, Scenario};
use paceline_store::{BudgetState, Store};
use paceline_tests::limiter::Limiter;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::net::SocketAddr;

/// One class whose ceiling is a guess and far too high.
fn guessed(base_url: &str, rate: &str, burst: u32) -> String {
    ONE_CLASS
        .replace("{base_url}", base_url)
        .replace("start = \"ceiling\"\nadapts = false", "start = \"modest\"")
        .replace("rate = \"10000/s\"", &format!("rate = \"{rate}\""))
        .replace("burst = 1000", &format!("burst = {burst}"))
}

/// Sends so many jobs to that address; the budget at the end.
async fn drained(base_url: &str, rate: &str, burst: u32, jobs: usize) -> BudgetState {
    let stage = Stage::new(wide(), &guessed(base_url, rate, burst)).await;
    stage.push("bulk", jobs).await;
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), jobs as u64, "{depths:?}");
    worker.stopped().await;
    let class = stage.class("bulk");
    stage.store.pace(&class, &class.budgets[0]).await.expect("redis runs")
}

async fn upstream() -> Sandbox {
    Sandbox::start(SocketAddr::from(([127, 0, 0, 1], 0)), wide()).await.expect("the sandbox starts")
}

fn assert_once(ledger: &Ledger, jobs: u64) {
    assert_eq!((ledger.summary.accepted, ledger.summary.duplicates), (jobs, 0), "{:?}", ledger.summary);
}

/// failures 74
#[tokio::test]
async fn nginx_that_names_no_wait_is_found_and_drained() {
    let sandbox = upstream().await;
    let nginx = Limiter::nginx(&sandbox.base_url(), 60, 20);
    let budget = drained(&nginx.base_url(), "240/s", 80, 400).await;
    assert_once(&sandbox.ledger(), 400);
    assert!(budget.heard.throttled > 0 && budget.pace_per_s < 120.0, "{budget:?}");
}

/// failures 70: a sender that does not slow down would stay locked out.
#[tokio::test]
async fn haproxy_that_counts_what_it_refuses_is_found_and_drained() {
    let sandbox = upstream().await;
    let haproxy = Limiter::haproxy(&sandbox.base_url(), 60, 250);
    let budget = drained(&haproxy.base_url(), "240/s", 80, 400).await;
    assert_once(&sandbox.ledger(), 400);
    assert!(budget.heard.throttled > 0 && budget.pace_per_s < 150.0, "{budget:?}");
}

/// The sandbox at 200/s, believed to be 600/s: the pace ends within 15 % of the truth.
#[tokio::test]
async fn the_pace_comes_near_the_truth() {
    let scenario = Scenario { rate_per_s: 200.0, burst: 20, ..Scenario::default() };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let sandbox = Sandbox::start(listen, scenario).await.expect("the sandbox starts");
    let budget = drained(&sandbox.base_url(), "600/s", 60, 1_200).await;
    assert_once(&sandbox.ledger(), 1_200);
    assert!((170.0..=230.0).contains(&budget.pace_per_s), "{budget:?}");
}

/// failures 32: the sender slows down at once, and not the one message alone.
#[tokio::test]
async fn a_throttle_slows_the_sender_and_not_the_message_alone() {
    let scenario = Scenario { rate_per_s: 5.0, burst: 1, retry_after_s: 1.0, ..Scenario::default() };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let sandbox = Sandbox::start(listen, scenario).await.expect("the sandbox starts");
    let budget = drained(&sandbox.base_url(), "50/s", 10, 20).await;
    assert_once(&sandbox.ledger(), 20);
    let summary = sandbox.ledger().summary;
    assert!(summary.throttled * 2 < summary.requests, "most requests go through: {summary:?}");
    assert!(budget.pace_per_s < 25.0, "{budget:?}");
}
