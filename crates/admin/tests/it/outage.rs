//! Redis away, emptied, full, or without its scripts: what is answered is true, and repeats are safe.

use crate::support::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn jobs(class: &str, keys: impl IntoIterator<Item = usize>) -> Vec<Value> {
    keys.into_iter().map(|n| json!({ "class": class, "key": format!("k{n}"), "payload": 1 })).collect()
}

#[tokio::test]
async fn while_redis_is_down_every_call_is_503_and_readiness_is_red_and_then_all_heals() {
    let mut api = Api::start();
    api.push("bulk", &["before"]).await;
    api.redis.kill();
    let answer = api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":1}"#).await;
    assert_eq!(answer.problem(503)["key"], "k");
    assert_eq!(answer.header("retry-after"), "1");
    assert!(!answer.text.contains("127.0.0.1"), "no address: {}", answer.text);
    let batch = api.post("/v1/jobs", Value::from(jobs("bulk", 0..120)).to_string()).await.problem(503);
    assert_eq!((&batch["created"], &batch["unavailable"]), (&json!(0), &json!(120)));
    for path in ["/v1/queues", "/v1/jobs/bulk/before", "/v1/dead-letters", "/v1/codes"] {
        assert_eq!(api.get(path).await.problem(503)["type"], "urn:paceline:problem:unavailable", "{path}");
    }
    api.post("/v1/queues/bulk/pause", "").await.problem(503);
    api.post("/v1/replays", r#"{"class":"bulk"}"#).await.problem(503);
    assert_eq!(api.get("/readyz").await.problem(503)["type"], "urn:paceline:problem:not_ready");
    api.get("/livez").await.ok();
    api.redis.run();
    let mut turns = 0;
    while api.get("/readyz").await.status != 200 {
        turns += 1;
        assert!(turns < 100, "readiness stays red");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The new Redis is empty: the class is declared again by the push itself.
    assert_eq!(api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":1}"#).await.status, 201);
}

/// failures 56: the script cache vanishes, every script heals.
#[tokio::test]
async fn a_lost_script_cache_is_not_even_noticed() {
    let api = Api::start();
    api.die("bulk", &["dead"], &End::DEFERRED).await;
    let flush = || api.redis.query::<()>(&[b"SCRIPT", b"FLUSH"]);
    flush();
    api.push("bulk", &["a"]).await;
    for path in ["/readyz", "/v1/queues", "/v1/jobs/bulk/a", "/v1/dead-letters", "/metrics"] {
        flush();
        assert_eq!(api.get(path).await.status, 200, "{path}");
    }
    for (path, body) in [
        ("/v1/queues/bulk/pause", "{}"),
        ("/v1/queues/bulk/resume", "{}"),
        ("/v1/replays", r#"{"class":"bulk"}"#),
        ("/v1/cancel", r#"{"class":"bulk","keys":["a"]}"#),
        ("/v1/erase", r#"{"class":"bulk","key":"a"}"#),
    ] {
        flush();
        api.post(path, body).await.ok();
    }
    let queue = api.get("/v1/queues/bulk").await.ok();
    assert_eq!(
        (&queue["pending"], &queue["cancelled"], &queue["deferred"]),
        (&json!(1), &json!(1), &json!(0))
    );
}

#[tokio::test]
async fn a_full_class_is_429_and_stops_no_other_class() {
    let api = Api::start();
    api.push("lifecycle", &["a", "b", "c"]).await;
    let one = api.post("/v1/jobs", r#"{"class":"lifecycle","payload":1}"#).await;
    assert!(one.problem(429)["detail"].as_str().unwrap().contains("full"));
    assert_eq!(one.header("retry-after"), "5");
    let mixed: Vec<Value> = jobs("lifecycle", 0..1).into_iter().chain(jobs("bulk", 0..1)).collect();
    let answer = api.post("/v1/jobs", Value::from(mixed).to_string()).await.problem(429);
    let words = [0, 1].map(|index: usize| answer["results"][index]["status"].as_str().unwrap());
    assert_eq!(words, ["unavailable", "created"]);
    assert_eq!(answer["results"][0]["error"]["field"], "class");
}

#[tokio::test]
async fn at_maxmemory_a_push_is_507_and_what_frees_memory_still_runs() {
    let api = Api::start();
    api.push("bulk", &["a"]).await;
    api.redis.query::<()>(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);
    let answer = api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":1}"#).await;
    assert_eq!(answer.problem(507)["type"], "urn:paceline:problem:out_of_memory");
    assert_eq!(answer.header("retry-after"), "5");
    api.delete("/v1/jobs/bulk/a").await.ok();
    api.redis.query::<()>(&[b"CONFIG", b"SET", b"maxmemory", b"0"]);
    assert_eq!(api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":1}"#).await.status, 201);
}

#[tokio::test]
async fn a_batch_that_breaks_midway_says_what_is_stored_and_its_repeat_completes_it() {
    let api = Api::start();
    // The first chunk of 50 fits under the class's limit, the second does not.
    let class = b"paceline:{g}:bulk:class";
    api.push("bulk", &["first"]).await;
    api.redis.query::<()>(&[b"HSET", class, b"max_waiting", b"60"]);
    let all = Value::from(jobs("bulk", 0..120)).to_string();
    let broken = api.post("/v1/jobs", all.clone()).await.problem(429);
    let counts =
        |answer: &Value| ["created", "duplicate", "unavailable"].map(|word| answer[word].as_u64().unwrap());
    assert_eq!(counts(&broken), [50, 0, 70]);
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["queued"], 51);
    api.redis.query::<()>(&[b"HSET", class, b"max_waiting", b"0"]);
    assert_eq!(counts(&api.post("/v1/jobs", all).await.ok()), [70, 50, 0]);
}

#[tokio::test]
async fn redis_that_refuses_writes_is_503() {
    let api = Api::start();
    api.redis.query::<()>(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    let answer = api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":1}"#).await;
    answer.problem(503);
    assert_eq!(answer.header("retry-after"), "1");
    api.redis.query::<()>(&[b"REPLICAOF", b"NO", b"ONE"]);
    assert_eq!(api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":1}"#).await.status, 201);
}

/// The call has timed out here and runs there later: who repeats it with the same key sends once.
#[tokio::test]
async fn a_push_whose_answer_was_lost_is_safe_to_repeat() {
    let api = Api::start();
    api.push("bulk", &["first"]).await;
    api.redis.signal("STOP");
    let started = Instant::now();
    let ready = api.get("/readyz").await.problem(503);
    assert!(started.elapsed() < Duration::from_millis(1_900), "{ready}");
    let job = r#"{"class":"bulk","key":"k","payload":1}"#;
    api.post("/v1/jobs", job).await.problem(503);
    api.redis.signal("CONT");
    api.get("/readyz").await.ok();
    assert_eq!(api.post("/v1/jobs", job).await.ok()["status"], "duplicate");
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["queued"], 2);
}
