use crate::support::*;
use serde_json::{Value, json};

async fn replay(api: &Api, ask: Value) -> Value {
    api.post("/v1/replays", ask.to_string()).await.ok()
}

fn counts(report: &Value) -> [u64; 6] {
    ["matched", "replayable", "replayed", "needs_confirmation", "expired", "moved"]
        .map(|word| report[word].as_u64().unwrap())
}

#[tokio::test]
async fn a_dry_run_counts_and_moves_nothing_and_the_real_one_keeps_its_word() {
    let api = Api::start();
    api.die("bulk", &["d1", "d2"], &End::DEFERRED).await;
    api.die("bulk", &["f"], &End::FAILED).await;
    let dry = replay(&api, json!({ "class": "bulk", "dry_run": true })).await;
    assert_eq!(counts(&dry), [2, 2, 0, 0, 0, 0], "failed only on request: {dry}");
    assert_eq!((&dry["examined"], &dry["verdicts"]), (&json!(2), &json!({ "transient": 2 })));
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["deferred"], 2);
    let real = replay(&api, json!({ "class": "bulk" })).await;
    assert_eq!(counts(&real), [2, 2, 2, 0, 0, 0]);
    assert_eq!(real["interval_ms"], 50.0, "a fifth of 100/s");
    let queue = api.get("/v1/queues/bulk").await.ok();
    assert_eq!((&queue["deferred"], &queue["pending"], &queue["failed"]), (&json!(0), &json!(2), &json!(1)));
    let shown = api.get("/v1/jobs/bulk/d1").await.ok();
    assert_eq!((&shown["replays"], &shown["counters"]["spent"]), (&json!(1), &json!(0)));
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 1, "history is kept");
}

/// failures 83: replay moves, and never twice.
#[tokio::test]
async fn a_repeat_or_a_second_operator_moves_nothing_twice() {
    let api = Api::start();
    api.die("bulk", &["a", "b"], &End::DEFERRED).await;
    let ask = json!({ "class": "bulk", "keys": ["a", "b", "nope"] });
    let (first, second) = tokio::join!(replay(&api, ask.clone()), replay(&api, ask));
    let replayed = |report: &Value| report["replayed"].as_u64().unwrap();
    assert_eq!(replayed(&first) + replayed(&second), 2, "{first} {second}");
    assert_eq!((&first["missing"], &second["missing"]), (&json!(1), &json!(1)));
    let third = replay(&api, json!({ "class": "bulk", "keys": ["a"] })).await;
    assert_eq!(counts(&third), [0, 0, 0, 0, 0, 1]);
    assert_eq!(third["held_back"], json!([{ "key": "a", "why": "moved", "state": "pending" }]));
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["pending"], 2);
}

#[tokio::test]
async fn what_may_have_been_accepted_needs_a_yes_where_nobody_would_recognise_it() {
    let api = Api::start();
    api.die("lifecycle", &["u"], &End::UNCONFIRMED).await;
    api.die("bulk", &["recognised"], &End::UNCONFIRMED).await;
    let held = replay(&api, json!({ "class": "lifecycle" })).await;
    assert_eq!(counts(&held), [1, 0, 0, 1, 0, 0]);
    assert_eq!(held["verdicts"], json!({ "ambiguous": 1 }));
    assert_eq!(
        held["held_back"],
        json!([{ "key": "u", "why": "needs_confirmation", "state": "unconfirmed" }])
    );
    assert_eq!(api.get("/v1/queues/lifecycle").await.ok()["unconfirmed"], 1);
    let yes = replay(&api, json!({ "class": "lifecycle", "accept_duplicates": true })).await;
    assert_eq!(counts(&yes), [1, 1, 1, 0, 0, 0]);
    let recognised = replay(&api, json!({ "class": "bulk", "state": "unconfirmed" })).await;
    assert_eq!(counts(&recognised), [1, 1, 1, 0, 0, 0], "its provider deduplicates and the window is open");
}

#[tokio::test]
async fn an_expired_job_is_not_replayed() {
    let api = Api::start();
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1_500);
    let job = json!({ "class": "bulk", "key": "k", "payload": 1, "expires_at": expires.to_string() });
    assert_eq!(api.post("/v1/jobs", job.to_string()).await.status, 201);
    api.end("bulk", &End::DEFERRED).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_600)).await;
    let report = replay(&api, json!({ "class": "bulk", "accept_duplicates": true })).await;
    assert_eq!(counts(&report), [1, 0, 0, 0, 1, 0]);
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["deferred"], 1);
}

#[tokio::test]
async fn a_filter_replays_what_it_names_only() {
    let api = Api::start();
    api.die("bulk", &["d"], &End::DEFERRED).await;
    api.die("bulk", &["x"], &End { code: "500", ..End::DEFERRED }).await;
    api.die("bulk", &["f"], &End::FAILED).await;
    let by_code = replay(&api, json!({ "class": "bulk", "code": "500" })).await;
    assert_eq!((counts(&by_code), &by_code["examined"]), ([1, 1, 1, 0, 0, 0], &json!(2)));
    let failed =
        replay(&api, json!({ "class": "bulk", "state": ["failed"], "reason": "invalid recipient" })).await;
    assert_eq!((counts(&failed), &failed["verdicts"]), ([1, 1, 1, 0, 0, 0], &json!({ "refused": 1 })));
    let queue = api.get("/v1/queues/bulk").await.ok();
    assert_eq!((&queue["deferred"], &queue["pending"], &queue["failed"]), (&json!(1), &json!(2), &json!(0)));
}

#[tokio::test]
async fn a_large_replay_goes_on_by_its_cursor() {
    let api = Api::start();
    for part in 0..6 {
        let keys: Vec<String> = (0..200).map(|n| format!("k{part}-{n}")).collect();
        api.die("bulk", &keys.iter().map(String::as_str).collect::<Vec<_>>(), &End::DEFERRED).await;
    }
    let first = replay(&api, json!({ "class": "bulk" })).await;
    assert_eq!((&first["examined"], &first["replayed"]), (&json!(1_000), &json!(1_000)));
    let second = replay(&api, json!({ "class": "bulk", "cursor": first["next_cursor"] })).await;
    assert_eq!((&second["replayed"], &second["next_cursor"]), (&json!(200), &json!(null)));
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["pending"], 1_200);
}

#[tokio::test]
async fn an_order_that_is_not_understood_replays_nothing() {
    let api = Api::start();
    api.die("bulk", &["d"], &End::DEFERRED).await;
    for (ask, field) in [
        (json!({}), "class"),
        (json!({ "class": "bulk", "keys": [] }), "keys"),
        (json!({ "class": "bulk", "keys": ["d"], "code": "503" }), "code"),
        (json!({ "class": "bulk", "state": 7 }), "state"),
        (json!({ "class": "bulk", "state": "deferred,failed" }), "state"),
        (json!({ "class": "bulk", "state": ["submitted"] }), "state"),
        (json!({ "class": "bulk", "resaon": "busy" }), "resaon"),
        (json!({ "class": "bulk", "dry_run": "yes" }), "dry_run"),
        (json!({ "class": "bulk", "cursor": "x" }), "cursor"),
    ] {
        let problem = api.post("/v1/replays", ask.to_string()).await.problem(400);
        assert_eq!(problem["field"], field, "{ask}");
    }
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["deferred"], 1);
}
