//! How a sandbox starts and ends.

use crate::support::{arrived, bytes_until_closed, client, one_answer, raw_send, sandbox, send, status};
use paceline_rehearsal::{Sandbox, SandboxError, Scenario};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_taken_address_and_a_bad_scenario_are_told_apart() {
    let sandbox = sandbox(|_| {}).await;
    let taken = Sandbox::start(sandbox.addr(), Scenario::default()).await.unwrap_err();
    assert!(matches!(taken, SandboxError::Listen { address, .. } if address == sandbox.addr()));
    let scenario = Scenario { burst: 0, ..Scenario::default() };
    let bad = Sandbox::start(([127, 0, 0, 1], 0).into(), scenario).await.unwrap_err();
    assert!(matches!(&bad, SandboxError::Scenario(fault) if fault.field == "burst"), "{bad}");
}

#[tokio::test]
async fn a_bad_scenario_never_takes_force() {
    let sandbox = sandbox(|_| {}).await;
    let fault = sandbox.set_scenario(Scenario { hang_share: 2.0, ..Scenario::default() }).unwrap_err();
    assert_eq!((fault.field.as_str(), sandbox.scenario().hang_share), ("hang_share", 0.0));
}

#[tokio::test]
async fn a_shutdown_lets_answers_leave_and_accepts_no_more() {
    let sandbox = sandbox(|s| s.latency_ms = 50).await;
    let address = sandbox.addr();
    let mut stream = raw_send(&sandbox, "x").await;
    arrived(&sandbox, 1).await;
    let ledger = sandbox.shutdown().await;
    assert!(one_answer(&mut stream).await.starts_with("HTTP/1.1 202"));
    assert_eq!(ledger.summary.accepted, 1);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_what_hangs_or_idles() {
    let sandbox = sandbox(|s| s.hang_share = 1.0).await;
    let _idle = TcpStream::connect(sandbox.addr()).await.unwrap();
    let mut hanging = raw_send(&sandbox, "x").await;
    arrived(&sandbox, 1).await;
    let began = Instant::now();
    sandbox.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(bytes_until_closed(&mut hanging).await, b"");
}

#[tokio::test]
async fn a_dropped_sandbox_takes_its_connections_with_it() {
    let sandbox = sandbox(|s| s.latency_ms = 60_000).await;
    let mut waiting = raw_send(&sandbox, "x").await;
    arrived(&sandbox, 1).await;
    drop(sandbox);
    assert_eq!(bytes_until_closed(&mut waiting).await, b"");
}

#[tokio::test]
async fn many_senders_at_once_never_exceed_the_limit() {
    let sandbox = sandbox(|s| s.burst = 100).await;
    let client = client();
    let sends = (0..400).map(|n| tokio::spawn(status(send(&client, &sandbox, &n.to_string()))));
    let mut accepted = 0;
    for sent in sends.collect::<Vec<_>>() {
        accepted += u64::from(sent.await.unwrap() == 202);
    }
    let summary = sandbox.summary();
    assert_eq!((accepted, summary.accepted, summary.throttled), (100, 100, 300));
}
