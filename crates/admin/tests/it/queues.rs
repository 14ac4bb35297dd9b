use crate::support::*;
use serde_json::json;

#[tokio::test]
async fn a_queue_tells_every_number_apart() {
    let api = Api::start();
    api.die("bulk", &["d"], &End::DEFERRED).await;
    api.die("bulk", &["u"], &End::UNCONFIRMED).await;
    api.die("bulk", &["f"], &End::FAILED).await;
    api.push("bulk", &["q"]).await;
    let later = r#"{"class":"bulk","key":"s","payload":1,"not_before":"2030-01-01T00:00:00Z"}"#;
    api.post("/v1/jobs", later).await;
    api.push("bulk", &["c"]).await;
    api.delete("/v1/jobs/bulk/c").await.ok();
    let mut queue = api.get("/v1/queues/bulk").await.ok();
    let age = queue["oldest_due_age_ms"].take().as_u64().unwrap();
    assert!(age < 10_000, "{age}");
    let wanted = json!({
        "class": "bulk", "queued": 2, "scheduled": 1, "pending": 0, "waiting": 2, "in_flight": 0, "submitted": 0,
        "failed": 1, "deferred": 1, "unconfirmed": 1, "expired": 0, "cancelled": 1, "done": 2,
        "oldest_due_age_ms": null, "oldest_pending_age_ms": null, "hold": null,
        "budgets": [
            { "name": "acme-key", "rate": "100/s", "burst": 20, "max_in_flight": 0, "hold": null },
            { "name": "shared", "rate": "1000/s", "burst": 100, "max_in_flight": 0, "hold": null },
        ],
    });
    assert_eq!(queue, wanted);
    let all = api.get("/v1/queues").await.ok();
    let classes: Vec<_> = all["queues"].as_array().unwrap().iter().map(|queue| &queue["class"]).collect();
    assert_eq!(classes, ["bulk", "lifecycle"]);
    assert_eq!(api.get("/v1/queues/nope").await.problem(404)["field"], "class");
}

#[tokio::test]
async fn a_pause_is_seen_with_its_end_and_who_did_it_until_it_is_lifted() {
    let api = Api::start();
    api.push("bulk", &["a"]).await;
    let before_ms = api.state.store.now_ms();
    let paused = api.post("/v1/queues/bulk/pause", r#"{"for_s":60}"#).await.ok();
    let hold = &paused["hold"];
    assert_eq!((&hold["cause"], &hold["by"]), (&json!("pause"), &json!("loopback")));
    let until_ms = hold["until_ms"].as_u64().unwrap();
    assert!((before_ms + 59_000..before_ms + 70_000).contains(&until_ms), "{hold}");
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["hold"], *hold);
    assert_eq!(api.get("/v1/queues/lifecycle").await.ok()["hold"], json!(null));
    assert_eq!(api.post("/v1/queues/bulk/resume", "").await.ok()["hold"], json!(null));
    assert_eq!(api.post("/v1/queues/bulk/pause", "{}").await.ok()["hold"]["until"], json!(null));
}

#[tokio::test]
async fn a_paused_budget_silences_every_class_that_spends_from_it() {
    let api = Api::start();
    let paused = api.post("/v1/budgets/shared/pause", "").await.ok();
    assert_eq!((&paused["name"], &paused["hold"]["cause"]), (&json!("shared"), &json!("pause")));
    for class in ["bulk", "lifecycle"] {
        let queue = api.get(&format!("/v1/queues/{class}")).await.ok();
        assert_eq!(queue["hold"], json!(null));
        assert_eq!(queue["budgets"][1]["hold"]["cause"], "pause", "{class}");
    }
    assert_eq!(api.post("/v1/budgets/shared/resume", "").await.ok()["hold"], json!(null));
    assert_eq!(api.post("/v1/budgets/nope/pause", "").await.problem(404)["field"], "name");
}

#[tokio::test]
async fn a_resume_lifts_a_suspect_credential() {
    let api = Api::start();
    api.push("bulk", &["a"]).await;
    let budget = b"paceline:{g}:budget:acme-key";
    api.redis.query::<()>(&[
        b"HSET",
        budget,
        b"hold_cause",
        b"suspect",
        b"hold_until",
        b"1",
        b"hold_probe_ms",
        b"60000",
    ]);
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["budgets"][0]["hold"]["cause"], "suspect");
    assert_eq!(api.post("/v1/budgets/acme-key/resume", "{}").await.ok()["hold"], json!(null));
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["budgets"][0]["hold"], json!(null));
}

#[tokio::test]
async fn a_pause_that_is_not_understood_changes_nothing() {
    let api = Api::start();
    for body in [r#"{"for_s":0}"#, r#"{"for_s":"60"}"#, r#"{"for_s":1e9}"#, r#"{"for_s":-1}"#] {
        assert_eq!(api.post("/v1/queues/bulk/pause", body).await.problem(400)["field"], "for_s", "{body}");
    }
    assert_eq!(api.post("/v1/queues/bulk/pause", r#"{"for_ms":1}"#).await.problem(400)["field"], "for_ms");
    assert_eq!(api.post("/v1/queues/bulk/pause", "{").await.problem(400)["field"], "body");
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["hold"], json!(null));
}
