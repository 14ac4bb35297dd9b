//! Remote sides that misbehave below HTTP: they close, they are silent, they never end. No slot is lost to them.

use crate::support::*;
use bytes::Bytes;
use paceline_core::State;
use paceline_store::NewJob;
use paceline_tests::peer::{Act, Peer, answer};
use paceline_tests::stage::Stage;
use std::collections::HashSet;
use std::time::Duration;

/// failures 28: a peer that drops idle connections just as the next request goes out. Whatever meets the close is
/// ambiguous and repeated with the same key; nothing is lost, and nothing is repeated for another reason.
#[tokio::test]
async fn a_connection_closed_as_the_request_goes_out_loses_nothing() {
    const JOBS: usize = 40;
    let idle = Duration::from_millis(40);
    let peer = Peer::impatient(Some(idle), |_| Act::accept()).await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    let worker = stage.worker();
    for i in 0..JOBS {
        push(&stage, "lane", paceline_tests::store::job(&i.to_string())).await;
        tokio::time::sleep(idle).await;
    }
    let depths = stage.await_drained("lane").await;
    assert_eq!(depths.of(State::Submitted), JOBS as u64, "{depths:?}");
    let heard = peer.heard();
    let send_ids: HashSet<&str> = heard.iter().map(|heard| heard.send_id.as_str()).collect();
    assert_eq!((send_ids.len(), send_ids.contains("")), (JOBS, false));
    let mut repeats = 0;
    for i in 0..JOBS {
        let stored = stage.job("lane", &i.to_string()).await;
        let job = job_of(&stored);
        assert_eq!(job.counters.attempts, u16::from(job.counters.spent) + 1, "{stored:?}");
        assert_eq!(job.flags.ambiguous, job.counters.spent > 0, "a reset is ambiguous: {stored:?}");
        repeats += usize::from(job.counters.spent);
    }
    assert!(repeats < JOBS / 2, "{repeats} of {JOBS} met the close");
    worker.stopped().await;
}

/// failures 28: and where the peer takes a request over a kept connection and closes without a word, every repeat
/// carries the same key.
#[tokio::test]
async fn a_request_lost_with_its_connection_is_repeated_under_the_same_key() {
    let peer = Peer::start(|heard| if heard.nth == 1 { Act::Close } else { Act::accept() }).await;
    let mut stage = before(&peer, &lanes(&["lane"])).await;
    without_outages(&mut stage);
    stage.push("lane", 20).await;
    let worker = stage.worker();
    let depths = stage.await_drained("lane").await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    let heard = peer.heard();
    let send_ids: HashSet<&str> = heard.iter().map(|heard| heard.send_id.as_str()).collect();
    assert_eq!((heard.len(), send_ids.len()), (40, 20), "each once more, under its own key");
    worker.stopped().await;
}

/// Short patience, one slot: who is stuck in it stops everybody behind.
async fn one_slot(peer: &Peer) -> Stage {
    let class = "[defaults.class]\nconcurrency = 1\n";
    let changes = [
        ("[defaults.class]\n", class),
        ("connect_timeout_ms = 1000", "connect_timeout_ms = 300"),
        ("first_byte_timeout_ms = 1500", "first_byte_timeout_ms = 300"),
        ("deadline_ms = 2000", "deadline_ms = 600"),
        ("backoff_base_ms = 20", "backoff_base_ms = 3600000"),
        ("backoff_cap_ms = 200", "backoff_cap_ms = 3600000"),
    ];
    before(peer, &changed(&lanes(&["lane"]), &changes)).await
}

/// What the peer does with the first job, and the code and outcome it has then.
fn endless() -> Vec<(&'static str, Act, &'static str)> {
    let head = Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
    let busy = Bytes::from_static(b"HTTP/1.1 503 Busy\r\ncontent-length: 1000000000\r\n\r\n");
    let slow = Duration::from_millis(50);
    vec![
        ("silence", Act::Hang, "first_byte"),
        ("half a head", Act::Drip(Bytes::from_static(b"HTTP/1.1 200 OK\r\nx-slow: "), slow), "first_byte"),
        ("a body byte by byte", Act::Drip(head.clone(), slow), "body"),
        ("a refusal byte by byte", Act::Drip(busy.clone(), slow), "503"),
        ("a refusal without end", Act::Flood(busy), "503"),
        ("a body without end", Act::Flood(head), "200"),
    ]
}

/// failures 29: connect, first byte and the whole have deadlines of their own, and what is read has a bound. When it
/// passes the slot is free and the job is put back, ambiguous where it may have been accepted.
#[tokio::test]
async fn a_request_that_never_ends_holds_no_slot() {
    for (what, act, code) in endless() {
        let peer = Peer::start(move |heard| match heard.path.as_str() {
            "/first" => act.clone(),
            _ => Act::accept(),
        })
        .await;
        let stage = one_slot(&peer).await;
        let first = r#"{"payload":1,"request":{"path":"/first"}}"#;
        push(&stage, "lane", NewJob { at_ms: 1, ..document_job("first", first) }).await;
        let worker = stage.worker();
        await_heard(&peer, 1).await;
        push(&stage, "lane", document_job("second", r#"{"payload":2}"#)).await;
        await_state(&stage, "lane", "second", State::Submitted).await;
        let stored = stage.job("lane", "first").await;
        assert_eq!(last(&stored).code, code, "{what}: {stored:?}");
        let accepted = code == "200";
        assert_eq!(
            stored.state,
            Some(if accepted { State::Submitted } else { State::Pending }),
            "{what}: {stored:?}"
        );
        let ambiguous = ["first_byte", "body"].contains(&code);
        assert_eq!(job_of(&stored).flags.ambiguous, ambiguous, "{what}: {stored:?}");
        assert_eq!(stage.depths("lane").await.of(State::InFlight), 0, "{what}");
        worker.stopped().await;
    }
}

/// failures 91: an error larger than the job leaves a few hundred bytes per attempt, and a bounded number of those.
#[tokio::test]
async fn an_error_of_eight_megabytes_leaves_a_few_hundred_bytes() {
    const JOBS: usize = 8;
    let large = answer(500, &[], &"query failed: ".repeat(600_000));
    assert!(large.len() > 8_000_000);
    let peer = Peer::start(move |_| Act::Say(large.clone())).await;
    let settings = changed(&lanes(&["lane"]), &[("[defaults.class]\n", "[defaults.class]\nmax_spent = 6\n")]);
    let mut stage = before(&peer, &settings).await;
    without_outages(&mut stage);
    stage.push("lane", JOBS).await;
    let worker = stage.worker();
    let depths = stage.await_drained("lane").await;
    assert_eq!(depths.of(State::Deferred), JOBS as u64, "{depths:?}");
    assert_eq!(peer.heard().len(), JOBS * 6);
    let mut connection = stage.redis.connection();
    for i in 0..JOBS {
        let mut length = redis::cmd("STRLEN");
        length.arg(format!("t:{{lane}}:lane:job:lane:{i}"));
        let bytes: usize = length.query(&mut connection).unwrap();
        assert!((100..6 * 1_024).contains(&bytes), "{bytes} bytes for a job of 6 attempts");
    }
    let stored = stage.job("lane", "lane:0").await;
    assert!(last(&stored).snippet.ends_with('…'), "the cut is marked: {:?}", last(&stored).snippet);
    worker.stopped().await;
}
