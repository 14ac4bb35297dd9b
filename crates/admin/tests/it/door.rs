//! Bad input: answered at the door, naming the field, and nothing is stored.

use crate::support::*;
use axum::body::Body;
use futures_util::stream;
use serde_json::{Value, json};

/// What is sent, the field that is named.
fn bad_documents() -> Vec<(String, &'static str)> {
    let with = |fields: Value| {
        let mut document = json!({ "class": "bulk", "key": "k", "payload": { "to": "ada" } });
        document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        document.to_string()
    };
    let header = |value: &str| with(json!({ "request": { "headers": { "x-tag": value } } }));
    let path = |path: &str| with(json!({ "request": { "path": path } }));
    vec![
        (with(json!({ "class": "nope" })), "class"),
        (with(json!({ "class": null })), "class"),
        (with(json!({ "class": "bulk\u{0}" })), "class"),
        (with(json!({ "key": "x".repeat(201) })), "key"),
        (with(json!({ "key": "a\nb" })), "key"),
        (with(json!({ "key": "a\u{0}b" })), "key"),
        (header("a\r\nX-Injected: 1"), "request.headers.\"x-tag\""),
        (header("a\nb"), "request.headers.\"x-tag\""),
        (header("عبدالله"), "request.headers.\"x-tag\""),
        (path("//evil.example/x"), "request.path"),
        (path("@evil.example"), "request.path"),
        (path("https://evil.example"), "request.path"),
        (with(json!({ "cost": 1_001 })), "cost"),
        (with(json!({ "cost": -1 })), "cost"),
        (with(json!({ "not_before": "2030-01-01T09:00:00" })), "not_before"),
        (with(json!({ "not_before": "9999-01-01T00:00:00Z" })), "not_before"),
        (with(json!({ "expires_at": 1_796_000_000 })), "expires_at"),
        (with(json!({ "tags": { "campaign": "x".repeat(41) } })), "tags.campaign"),
        (with(json!({ "payload": { "to": "a\u{0}" } })), "payload/to"),
        (with(json!({ "request": { "encoding": "raw" } })), "payload"),
        (r#"{"class":"bulk","payload":{"to":"\ud800"}}"#.into(), "payload"),
        (r#"{"class":"bulk","payload":1,"note":"\udc00"}"#.into(), "document"),
        (format!(r#"{{"class":"bulk","payload":{}}}"#, "[".repeat(9_000) + &"]".repeat(9_000)), "payload"),
        (format!(r#"{{"class":"bulk","payload":1,"x":{}1}}"#, "[".repeat(9_000)), "document"),
        (r#"{"class":"bulk"}"#.into(), "payload"),
        (r#"{"class":"bulk","payload":1"#.into(), "document"),
        (r#"{"class":"bulk","class":"lifecycle","payload":1}"#.into(), "document"),
    ]
}

#[tokio::test]
async fn a_bad_job_is_refused_with_400_naming_its_field() {
    let api = Api::start();
    for (document, field) in bad_documents() {
        let problem = api.post("/v1/jobs", document.clone()).await.problem(400);
        assert_eq!(problem["field"], field, "{document}: {problem}");
    }
    assert_eq!(api.snapshot(), [""; 0], "nothing was stored");
}

#[tokio::test]
async fn bad_jobs_among_good_ones_are_answered_each_in_its_place_and_the_good_ones_stored() {
    let api = Api::start();
    let (mut lines, mut wanted) = (Vec::new(), Vec::new());
    for (index, (document, field)) in bad_documents().into_iter().enumerate() {
        lines.extend([
            document,
            json!({ "class": "bulk", "key": format!("k{index}"), "payload": 1 }).to_string(),
        ]);
        wanted.extend([("invalid", field), ("created", "")]);
    }
    let answer = api.ndjson(lines.join("\n")).await.ok();
    let rows = answer["results"].as_array().unwrap();
    let found: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["status"].as_str().unwrap(), row["error"]["field"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(found, wanted);
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["queued"], wanted.len() / 2);
}

#[tokio::test]
async fn bytes_that_are_no_utf_8_are_refused_and_the_answer_is_utf_8() {
    let api = Api::start();
    let latin = b"{\"class\":\"bulk\",\"payload\":\"ung\xFCltig\"}".to_vec();
    api.post("/v1/jobs", latin.clone()).await.problem(400);
    api.post("/v1/jobs", b"\xFF\xFE{\x00".to_vec()).await.problem(400);
    let elsewhere = b"{\"class\":\"bulk\",\"payload\":1,\"x\":\"\xFC\"}".to_vec();
    api.post("/v1/jobs", elsewhere).await.problem(400);
    assert_eq!(api.ndjson(latin).await.ok()["invalid"], 1);
    assert_eq!(api.snapshot(), [""; 0]);
}

#[tokio::test]
async fn a_document_over_its_limit_is_413_naming_the_limit() {
    let api = Api::start();
    let document = json!({ "class": "bulk", "key": "k", "payload": "x".repeat(20_000) });
    let problem = api.post("/v1/jobs", document.to_string()).await.problem(413);
    assert_eq!(problem["field"], "document");
    assert!(problem["detail"].as_str().unwrap().contains("20000 (max_document_bytes)"), "{problem}");
}

#[tokio::test]
async fn a_body_over_its_limit_is_413_naming_the_limit_and_what_was_stored_of_it() {
    let api = Api::configured("[admin]\nmax_body_bytes = 5000\n", |_| {});
    let line = json!({ "class": "bulk", "payload": "x".repeat(60) }).to_string() + "\n";
    let told = with_header(request("POST", "/v1/jobs", line.repeat(200)), "content-length", "99999");
    let problem = api.send(told).await.problem(413);
    assert!(problem["detail"].as_str().unwrap().contains("5000"), "{problem}");
    // Without a length it is found out under way; 50 lines fit into the first chunk of jobs.
    let short = json!({ "class": "bulk", "payload": 1 }).to_string() + "\n";
    let pieces = [short.repeat(60), line.repeat(200)].map(Ok::<_, std::convert::Infallible>);
    let problem = api.ndjson(Body::from_stream(stream::iter(pieces))).await.problem(413);
    assert_eq!(problem["field"], "body");
    assert_eq!((&problem["created"], &problem["unavailable"]), (&json!(50), &json!(10)), "{problem}");
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["queued"], 50);
}
