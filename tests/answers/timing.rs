//! "Not right now" is never filed as "not ever", and what was refused together does not come back together.

use crate::support::*;
use bytes::Bytes;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::{ErrorAnswer, RetryAfter};
use paceline_store::{Cursor, Store};
use paceline_tests::peer::{Act, Gate, Peer, answer};
use paceline_tests::stage::Stage;

fn share(status: u16, share: f64) -> ErrorAnswer {
    ErrorAnswer { share, ..ErrorAnswer::new(status) }
}

/// Every kind of "later" at once: throttles, overload, gateway errors, resets, timeouts.
fn everything_but_no() -> Scenario {
    Scenario {
        rate_per_s: 400.0,
        burst: 20,
        retry_after: RetryAfter::None,
        unanswered_share: 0.05,
        hang_share: 0.02,
        hang_ms: 10_000,
        errors: vec![
            share(503, 0.1),
            share(500, 0.03),
            share(408, 0.03),
            share(425, 0.02),
            ErrorAnswer { delivered: true, ..share(502, 0.03) },
            ErrorAnswer { retry_after: Some("0.050".into()), ..share(503, 0.03) },
        ],
        ..Scenario::default()
    }
}

#[tokio::test]
async fn later_in_every_form_loses_fails_and_doubles_nothing() {
    let settings = one_class(&[("first_byte_timeout_ms = 1500", "first_byte_timeout_ms = 500")]);
    let mut stage = Stage::new(everything_but_no(), &settings).await;
    without_outages(&mut stage);
    let worker = stage.worker();
    stage.push("bulk", 150).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 150, "{depths:?}");
    let summary = stage.ledger().summary;
    assert!(summary.throttled > 0 && summary.unanswered > 0 && summary.refused > 0, "{summary:?}");
    assert_eq!((summary.accepted, summary.delivered, summary.duplicates), (150, 150, 0), "{summary:?}");
    worker.stopped().await;
}

/// failures 22: 408 is repeated over a new connection, 425 is repeated, and both are delivered; 400 with the words
/// of a timeout in its body is terminal as long as no rule says otherwise.
#[tokio::test]
async fn request_timeout_and_too_early_are_not_the_senders_fault() {
    let peer = Peer::start(|heard| match (heard.path.as_str(), heard.nth) {
        ("/408", 1) => Act::SayAndClose(answer(408, &[("connection", " close")], "")),
        ("/425", 1) => Act::status(425),
        ("/400", _) => Act::Say(answer(400, &[], "Request Timeout")),
        _ => Act::accept(),
    })
    .await;
    let stage = before(&peer, &lanes(&["a", "b", "c"])).await;
    for (class, path) in [("a", "/408"), ("b", "/425"), ("c", "/400")] {
        push_to(&stage, class, path).await;
    }
    let worker = stage.worker();
    for class in ["a", "b"] {
        let stored = await_state(&stage, class, "job", State::Submitted).await;
        assert_eq!(job_of(&stored).counters.attempts, 2, "{class}");
    }
    let stored = await_state(&stage, "c", "job", State::Failed).await;
    assert_eq!(
        (last(&stored).rule.as_str(), last(&stored).snippet.as_str()),
        ("http:400", "Request Timeout")
    );
    let heard = peer.heard();
    let connections: Vec<usize> =
        heard.iter().filter(|heard| heard.path == "/408").map(|heard| heard.connection).collect();
    assert!(connections.len() == 2 && connections[0] != connections[1], "{connections:?}");
    worker.stopped().await;
}

/// failures 26: no redirect is followed, whatever waits behind it; the job stays undelivered and says why. 303 means
/// "processed, look elsewhere", so nobody can tell; the others are a misconfigured destination.
#[tokio::test]
async fn a_redirect_to_a_page_that_says_200_delivers_nothing() {
    let statuses = [301, 302, 303, 307, 308];
    let peer = Peer::start(|heard| match heard.path[1..].parse() {
        Ok(status) => Act::Say(answer(status, &[("location", " /login")], "")),
        Err(_) => Act::Say(answer(200, &[], "<html>Please log in</html>")),
    })
    .await;
    let settings =
        changed(&lanes(&numbered(5)), &[("[defaults.class]\n", "[defaults.class]\nmax_spent = 2\n")]);
    let stage = before(&peer, &settings).await;
    for (i, status) in statuses.into_iter().enumerate() {
        push_to(&stage, &format!("lane-{i}"), &format!("/{status}")).await;
    }
    let worker = stage.worker();
    for (i, status) in statuses.into_iter().enumerate() {
        let ends = if status == 303 { State::Deferred } else { State::Failed };
        let stored = await_state(&stage, &format!("lane-{i}"), "job", ends).await;
        assert!(last(&stored).reason.contains("redirects are not followed"), "{status}: {stored:?}");
        assert_eq!(last(&stored).code, status.to_string());
    }
    let heard = peer.heard();
    assert!(heard.iter().all(|heard| heard.path != "/login"), "{heard:?}");
    assert!(heard.iter().all(|heard| heard.head.starts_with("POST ") && !heard.body.is_empty()));
    worker.stopped().await;
}

/// failures 76: jobs that failed together come back spread over their whole window.
#[tokio::test]
async fn what_failed_together_does_not_come_back_together() {
    const JOBS: usize = 300;
    let gate = Gate::default();
    let shut = gate.clone();
    let peer = Peer::start(move |_| Act::When(shut.clone(), Box::new(Act::status(503)))).await;
    let settings = one_class(&[
        ("[class.bulk]", "[class.bulk]\nconcurrency = 400"),
        ("deadline_ms = 2000", "deadline_ms = 30000"),
        ("first_byte_timeout_ms = 1500", "first_byte_timeout_ms = 30000"),
        ("backoff_base_ms = 20", "backoff_base_ms = 20000"),
        ("backoff_cap_ms = 200", "backoff_cap_ms = 60000"),
    ]);
    let stage = before(&peer, &settings).await;
    let worker = stage.worker();
    stage.push("bulk", JOBS).await;
    await_heard(&peer, JOBS).await;
    gate.open();
    stage.await_count("bulk", State::Pending, JOBS as u64 - 1).await;
    let class = stage.class("bulk");
    let listed =
        stage.store.list(&class, State::Pending, &Cursor::default(), JOBS).await.expect("redis runs");
    let bins = one_second_bins(listed.iter().map(|listed| listed.score_ms));
    assert!(bins.len() >= 15, "the whole window is used: {bins:?}");
    assert!(bins.iter().all(|&n| n <= 3 * JOBS / 20), "{bins:?}");
    drop(worker);
}

fn one_second_bins(scores_ms: impl Iterator<Item = u64>) -> Vec<usize> {
    let scores: Vec<u64> = scores_ms.collect();
    let first = scores.iter().min().expect("some are pending");
    let mut bins = Vec::new();
    for score in &scores {
        let bin = ((score - first) / 1_000) as usize;
        bins.resize(bins.len().max(bin + 1), 0);
        bins[bin] += 1;
    }
    bins
}

/// The whole of an answer is never needed to know that it said "later".
#[tokio::test]
async fn a_refusal_that_breaks_off_is_still_that_refusal() {
    let half = Bytes::from_static(b"HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\nhalf");
    let peer = Peer::start(move |heard| match heard.nth {
        1 => Act::SayAndClose(half.clone()),
        _ => Act::accept(),
    })
    .await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    push_to(&stage, "lane", "/").await;
    let worker = stage.worker();
    let stored = await_state(&stage, "lane", "job", State::Submitted).await;
    let job = job_of(&stored);
    assert_eq!((job.counters.spent, job.counters.attempts, job.flags.ambiguous), (1, 2, false), "{stored:?}");
    worker.stopped().await;
}
