//! Requests that are accepted and never answered.

use crate::support::{
    arrived, bytes_until_closed, client, json_of, one_answer, raw_send, sandbox, send, write_send,
};
use paceline_rehearsal::{Sandbox, Scenario};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

fn answer_again(sandbox: &Sandbox) {
    let scenario = Scenario { unanswered_share: 0.0, hang_share: 0.0, ..sandbox.scenario() };
    sandbox.set_scenario(scenario).unwrap();
}

#[tokio::test]
async fn an_unanswered_request_gets_no_byte_and_was_delivered() {
    let sandbox = sandbox(|s| s.unanswered_share = 1.0).await;
    let mut stream = raw_send(&sandbox, "x").await;
    assert_eq!(bytes_until_closed(&mut stream).await, b"");
    let ledger = sandbox.ledger();
    let entry = ledger.entry("x").unwrap();
    assert_eq!((entry.delivered, entry.unanswered, entry.arrivals), (1, 1, 1));
    assert!(entry.first_accepted_us.is_some());
}

#[tokio::test]
async fn a_connection_that_was_answered_before_is_cut_as_well() {
    let sandbox = sandbox(|_| {}).await;
    let mut stream = raw_send(&sandbox, "a").await;
    assert!(one_answer(&mut stream).await.starts_with("HTTP/1.1 202"));
    sandbox.set_scenario(Scenario { unanswered_share: 1.0, ..sandbox.scenario() }).unwrap();
    write_send(&mut stream, "b").await;
    assert_eq!(bytes_until_closed(&mut stream).await, b"");
    assert_eq!(sandbox.summary().delivered, 2);
}

/// The failure this is for: the client sees a broken connection, and a blind repeat would be a duplicate.
#[tokio::test]
async fn a_repeat_after_silence_is_recognised_or_is_a_duplicate() {
    for deduplicates in [true, false] {
        let sandbox = sandbox(|s| (s.unanswered_share, s.deduplicates) = (1.0, deduplicates)).await;
        let client = client();
        let error = send(&client, &sandbox, "x").send().await.unwrap_err();
        assert!(!error.is_timeout() && !error.is_connect(), "{error:?}");
        answer_again(&sandbox);
        let (code, body) = json_of(send(&client, &sandbox, "x")).await;
        let ledger = sandbox.ledger();
        let first = ledger.entry("x").unwrap().message_id.as_deref();
        assert_eq!((code, body["id"].as_str() == first), (202, deduplicates));
        assert_eq!(ledger.summary.duplicates, u64::from(!deduplicates));
        assert_eq!(ledger.summary.requests, 2, "the client repeated nothing behind our back");
    }
}

#[tokio::test]
async fn a_hanging_request_stays_open_without_a_byte_and_is_cut_in_the_end() {
    let sandbox = sandbox(|s| (s.hang_share, s.hang_ms) = (1.0, 300)).await;
    let sent = Instant::now();
    let mut stream = raw_send(&sandbox, "x").await;
    let early = tokio::time::timeout(Duration::from_millis(50), stream.read_u8()).await;
    assert!(early.is_err(), "neither a byte nor a close");
    assert_eq!((sandbox.summary().delivered, sandbox.summary().unanswered), (1, 1));
    assert_eq!(bytes_until_closed(&mut stream).await, b"");
    assert!(sent.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn one_cut_does_not_touch_other_connections() {
    let sandbox = sandbox(|s| s.hang_share = 1.0).await;
    let mut hanging = raw_send(&sandbox, "a").await;
    arrived(&sandbox, 1).await;
    sandbox.set_scenario(Scenario { hang_share: 0.0, unanswered_share: 1.0, ..sandbox.scenario() }).unwrap();
    bytes_until_closed(&mut raw_send(&sandbox, "b").await).await;
    assert!(tokio::time::timeout(Duration::from_millis(30), hanging.read_u8()).await.is_err());
}
