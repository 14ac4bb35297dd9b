//! What a producer wrote straight into Redis, past the door: it arrives byte for byte or it never leaves.

use crate::support::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use paceline_core::State;
use paceline_store::NewJob;
use paceline_tests::peer::{Act, Peer};
use paceline_tests::stage::Stage;

/// Key and document.
type Odd = (&'static str, &'static str);

/// What forges a header, names a host or is no document at all, and the field at fault.
const ODD: [(Odd, &str); 11] = [
    (("crlf", r#"{"payload":{},"request":{"headers":{"x-tag":"a\r\nX-Injected: 1"}}}"#), "request.headers"),
    (("lf", r#"{"payload":{},"request":{"headers":{"x-tag":"a\nb"}}}"#), "request.headers"),
    (("nul", r#"{"payload":{},"request":{"headers":{"x-tag":"a\u0000b"}}}"#), "request.headers"),
    (("arabic", r#"{"payload":{},"request":{"headers":{"x-tag":"عبدالله"}}}"#), "request.headers"),
    (("name", r#"{"payload":{},"request":{"headers":{"x tag":"a"}}}"#), "request.headers"),
    (("host", r#"{"payload":{},"request":{"path":"//host.example/v1"}}"#), "request.path"),
    (("url", r#"{"payload":{},"request":{"path":"http://host.example/"}}"#), "request.path"),
    (("split", r#"{"payload":{},"request":{"path":"/a HTTP/1.1\r\nHost: x"}}"#), "request.path"),
    (("reserved", r#"{"payload":{},"request":{"headers":{"Authorization":"Bearer x"}}}"#), "request.headers"),
    (("empty", ""), "document"),
    (("no-payload", "{}"), "payload"),
];

/// failures 98: it is terminal at once, names the field, sends nothing, and stops nobody.
#[tokio::test]
async fn a_document_that_forges_a_header_or_a_host_fails_and_sends_nothing() {
    let peer = Peer::start(|_| Act::accept()).await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    for ((key, document), _) in ODD {
        push(&stage, "lane", document_job(key, document)).await;
    }
    let good = r#"{"payload":{"key":"good"},"request":{"headers":{"x-tag":"1:2"}}}"#;
    push(&stage, "lane", document_job("good", good)).await;
    let worker = stage.worker();
    let depths = stage.await_drained("lane").await;
    assert_eq!((depths.of(State::Submitted), depths.of(State::Failed)), (1, ODD.len() as u64), "{depths:?}");
    for ((key, _), field) in ODD {
        let stored = stage.job("lane", key).await;
        let attempt = last(&stored);
        assert!(attempt.reason.starts_with(&format!("invalid_document: {field}")), "{key}: {attempt:?}");
        assert_eq!(
            (attempt.outcome.as_str(), job_of(&stored).counters.attempts),
            ("invalid_document", 0),
            "{key}"
        );
    }
    let heard = peer.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].head.contains("x-tag: 1:2\r\n"), "{}", heard[0].head);
    assert_eq!(holds(&stage, "lane").await, [None, None], "twenty of them would say nothing of the sender");
    worker.stopped().await;
}

/// Bytes of every value, not to be compressed into a pattern.
fn binary(n: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(n)
    .collect()
}

/// The body a job is to have, and the document that makes it.
fn bodies() -> Vec<(&'static str, Vec<u8>, NewJob)> {
    let raw = |key, text: String| {
        let document = serde_json::json!({"payload": text, "request": {"encoding": "raw", "headers": {"content-type": "text/plain"}}});
        (key, text.into_bytes(), document_job(key, document.to_string()))
    };
    let json = |key, payload: String| {
        let document = format!("{{\"payload\":{payload}}}");
        (key, payload.into_bytes(), document_job(key, document))
    };
    vec![
        raw("nothing", String::new()),
        raw("line-ends", "a\r\n.\r\nb\n\n\t\u{7f}\u{1F980}".into()),
        raw("binary-1m", STANDARD.encode(binary(1_000_000))),
        json("json-100k", serde_json::json!({"data": STANDARD.encode(binary(75_000))}).to_string()),
        json("odd-blanks", "{ \"b\" : 1.0 ,\t\"a\":1e2, \"a\":12345678901234567890123 }".into()),
    ]
}

/// failures 101: empty, large and binary bodies arrive as they were written, and weigh in Redis what they weigh.
#[tokio::test]
async fn every_body_arrives_byte_for_byte_and_is_stored_near_one_to_one() {
    let peer = Peer::start(|_| Act::accept()).await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    for (key, _, job) in bodies() {
        let len = job.document.len();
        push(&stage, "lane", job).await;
        let stored = stored_bytes(&stage, key);
        assert!(stored <= len + len / 3 + 512, "{key}: {stored} bytes for a document of {len}");
    }
    let worker = stage.worker();
    let depths = stage.await_drained("lane").await;
    assert_eq!(depths.of(State::Submitted), bodies().len() as u64, "{depths:?}");
    let heard = peer.heard();
    for (key, body, _) in bodies() {
        assert!(heard.iter().any(|heard| heard.body == body), "{key} did not arrive as it was written");
        assert!(stored_bytes(&stage, key) < 1_024, "what is over leaves a receipt");
    }
    worker.stopped().await;
}

/// What Redis holds of a job, its record and its body, with what Redis adds.
fn stored_bytes(stage: &Stage, key: &str) -> usize {
    let mut connection = stage.redis.connection();
    ["job", "body"]
        .map(|part| {
            let name = format!("t:{{lane}}:lane:{part}:{key}");
            let mut usage = redis::cmd("MEMORY");
            usage.arg("USAGE").arg(&name);
            usage.query::<Option<usize>>(&mut connection).expect("redis runs").unwrap_or(0)
        })
        .iter()
        .sum()
}
