//! What an answered request gets.

use crate::support::{client, json_of, one_answer, raw_send, sandbox, send, status, write_send};
use paceline_core::retry_after;
use paceline_rehearsal::scenario::{ErrorAnswer, RetryAfter, Scenario};
use reqwest::header::{ALLOW, CONTENT_TYPE, DATE, RETRY_AFTER};
use serde_json::json;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[tokio::test]
async fn an_accepted_send_has_a_message_id_and_a_line_in_the_ledger() {
    let sandbox = sandbox(|_| {}).await;
    let before_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let (code, body) = json_of(send(&client(), &sandbox, "x")).await;
    assert_eq!((code, &body["status"]), (202, &json!("accepted")));
    let ledger = sandbox.ledger();
    let entry = ledger.entry("x").unwrap();
    assert_eq!(entry.message_id.as_deref(), body["id"].as_str());
    assert_eq!(entry.payload_key.as_deref(), Some("key of x"));
    assert_eq!(entry.credential, "Bearer test");
    let accepted_us = entry.first_accepted_us.unwrap();
    assert!((before_us..before_us + 10_000_000).contains(&accepted_us));
}

#[tokio::test]
async fn any_path_and_any_payload_is_a_send() {
    let sandbox = sandbox(|_| {}).await;
    let client = client();
    let url = |path: &str| format!("{}{path}", sandbox.base_url());
    for request in [
        client.post(url("/")).body("to=%2B49"),
        client.put(url("/v2/messages/7?key=q")).body(vec![0xFF, 0x00]),
        client.patch(url("/a/b/c")).json(&json!({ "key": 7 })),
        client.post(url("/list")).json(&json!(["key"])),
    ] {
        assert_eq!(status(request).await, 202);
    }
    let ledger = sandbox.ledger();
    let send_ids: Vec<_> = ledger.entries.iter().map(|entry| entry.send_id.as_str()).collect();
    assert_eq!(send_ids, ["none:1", "none:2", "none:3", "none:4"]);
    assert!(ledger.entries.iter().all(|entry| entry.payload_key.is_none()));
}

#[tokio::test]
async fn reading_is_not_sending() {
    let sandbox = sandbox(|_| {}).await;
    let response = client().get(format!("{}/v1/send", sandbox.base_url())).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()[ALLOW]),
        (405, &"POST, PUT, PATCH".parse().unwrap())
    );
    assert_eq!(sandbox.summary().requests, 0);
}

#[tokio::test]
async fn a_credential_is_found_wherever_providers_look_for_it() {
    let sandbox = sandbox(|_| {}).await;
    let client = client();
    let post = |path: &str| client.post(format!("{}{path}", sandbox.base_url()));
    for request in [
        post("/?key=c").header("authorization", "Bearer a").header("x-api-key", "b"),
        post("/?key=c").header("x-api-key", "b"),
        post("/?to=x&key=c%2Fd"),
        post("/").header("authorization", ""),
    ] {
        assert_eq!(status(request).await, 202);
    }
    let credentials: Vec<_> = sandbox.ledger().entries.into_iter().map(|entry| entry.credential).collect();
    assert_eq!(credentials, ["Bearer a", "b", "c/d", "anonymous"]);
}

#[tokio::test]
async fn above_the_limit_a_send_is_throttled_with_a_wait() {
    let sandbox = sandbox(|s| (s.burst, s.retry_after_s) = (2, 1.5)).await;
    let client = client();
    assert_eq!(status(send(&client, &sandbox, "a")).await, 202);
    assert_eq!(status(send(&client, &sandbox, "b")).await, 202);
    let response = send(&client, &sandbox, "c").send().await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()[RETRY_AFTER]), (429, &"2".parse().unwrap()));
    assert_eq!(response.json::<serde_json::Value>().await.unwrap(), json!({ "error": "rate_limited" }));
    assert_eq!(sandbox.ledger().entry("c").unwrap().throttled, 1);
}

#[tokio::test]
async fn the_wait_is_told_in_every_form() {
    let sandbox = sandbox(|s| s.burst = 1).await;
    let client = client();
    status(send(&client, &sandbox, "first")).await;
    for (form, code, expected) in [
        (RetryAfter::Seconds, 429, Some("3")),
        (RetryAfter::Decimal, 503, Some("2.500")),
        (RetryAfter::Raw, 403, Some("in a while")),
        (RetryAfter::None, 429, None),
        (RetryAfter::Date, 429, None),
    ] {
        let retry_after_raw = "in a while".into();
        let scenario = Scenario {
            retry_after: form,
            throttle_status: code,
            retry_after_s: 2.5,
            retry_after_raw,
            ..sandbox.scenario()
        };
        sandbox.set_scenario(scenario).unwrap();
        let response = send(&client, &sandbox, "x").send().await.unwrap();
        assert_eq!(response.status().as_u16(), code);
        let told = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        if form == RetryAfter::Date {
            let wait_ms = retry_after::parse(&told(RETRY_AFTER).unwrap(), told(DATE).as_deref(), 0).unwrap();
            assert!((2_500..=4_500).contains(&wait_ms), "{wait_ms}");
        } else {
            assert_eq!(told(RETRY_AFTER).as_deref(), expected);
        }
    }
}

#[tokio::test]
async fn an_error_is_answered_as_the_scenario_words_it() {
    let error = ErrorAnswer {
        retry_after: Some("1e3".into()),
        body: Some("<h1>Bad gateway</h1>".into()),
        ..ErrorAnswer::new(502)
    };
    let sandbox = sandbox(|s| s.always = Some(error)).await;
    let response = send(&client(), &sandbox, "x").send().await.unwrap();
    assert_eq!(response.status().as_u16(), 502);
    assert_eq!(response.headers()[RETRY_AFTER], "1e3");
    assert_eq!(response.headers()[CONTENT_TYPE], "text/plain");
    assert_eq!(response.text().await.unwrap(), "<h1>Bad gateway</h1>");
    assert_eq!((sandbox.summary().refused, sandbox.summary().delivered), (1, 0));
}

#[tokio::test]
async fn an_unknown_credential_is_refused() {
    let sandbox = sandbox(|s| s.accept_keys = Some(vec!["known".into()])).await;
    let client = client();
    assert_eq!(status(send(&client, &sandbox, "x")).await, 401);
    let known = client.post(sandbox.base_url()).bearer_auth("known");
    assert_eq!(status(known).await, 202);
}

#[tokio::test]
async fn a_mix_of_errors_reaches_the_ledger_as_it_was_answered() {
    let share = |code, share| ErrorAnswer { share, ..ErrorAnswer::new(code) };
    let sandbox = sandbox(|s| s.errors = vec![share(500, 0.3), share(429, 0.3)]).await;
    let client = client();
    let mut codes = Vec::new();
    for n in 0..60 {
        codes.push(status(send(&client, &sandbox, &n.to_string())).await);
    }
    let count = |code| codes.iter().filter(|seen| **seen == code).count() as u64;
    let summary = sandbox.summary();
    assert_eq!([count(500), count(429), count(202)], [summary.refused, summary.throttled, summary.accepted]);
    assert!([500, 429, 202].iter().all(|code| count(*code) > 0), "{codes:?}");
}

#[tokio::test]
async fn the_send_id_is_read_from_the_scenarios_header() {
    let sandbox = sandbox(|s| s.idempotency_header = "X-Request-Id".into()).await;
    let client = client();
    for _ in 0..2 {
        status(send(&client, &sandbox, "ignored").header("x-request-id", "x")).await;
    }
    assert_eq!(sandbox.ledger().entry("x").unwrap().repeats_deduplicated, 1);
}

#[tokio::test]
async fn latency_delays_the_answer_and_not_the_acceptance() {
    let sandbox = sandbox(|s| s.latency_ms = 40).await;
    let sent = Instant::now();
    let before_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    assert_eq!(status(send(&client(), &sandbox, "x")).await, 202);
    let answered_us = sent.elapsed().as_micros() as u64;
    assert!(answered_us >= 40_000);
    let accepted_us = sandbox.ledger().entry("x").unwrap().first_accepted_us.unwrap();
    assert!(accepted_us - before_us <= answered_us - 39_000, "accepted before the delay, not after it");
}

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let sandbox = sandbox(|_| {}).await;
    let mut stream = raw_send(&sandbox, "a").await;
    assert!(one_answer(&mut stream).await.starts_with("HTTP/1.1 202"));
    write_send(&mut stream, "b").await;
    assert!(one_answer(&mut stream).await.starts_with("HTTP/1.1 202"));
    assert_eq!(sandbox.summary().accepted, 2);
}
