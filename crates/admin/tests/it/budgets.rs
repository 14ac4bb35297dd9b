use crate::support::*;
use serde_json::json;

#[tokio::test]
async fn a_budget_tells_its_pace_its_ceiling_and_who_spends() {
    let api = Api::start();
    let budget = api.get("/v1/budgets/acme-key").await.ok();
    let wanted = json!({ "name": "acme-key", "rate": "100/s", "ceiling_per_s": 100.0, "pace_per_s": 20.0,
        "ceiling_burst": 18.0, "limits_by": null, "throttled": 0, "hold": null, "classes": ["bulk"] });
    for (field, value) in wanted.as_object().unwrap() {
        assert_eq!(&budget[field], value, "{field}");
    }
    let all = api.get("/v1/budgets").await.ok();
    let names: Vec<_> = all["budgets"].as_array().unwrap().iter().map(|budget| &budget["name"]).collect();
    assert_eq!(names, ["acme-key", "blunt-key", "shared"], "a shared one is told once");
    assert_eq!(api.get("/v1/budgets/nope").await.problem(404)["field"], "name");
    assert_eq!(api.get("/v1/budgets?x=1").await.problem(400)["field"], "x");
}

#[tokio::test]
async fn limits_by_hand_are_in_force_at_once_and_kept_with_who_set_them() {
    let api = Api::start();
    let set = api.put("/v1/budgets/acme-key", r#"{"rate":"10/s","burst":5}"#).await.ok();
    assert_eq!(
        (&set["ceiling_per_s"], &set["pace_per_s"], &set["ceiling_burst"]),
        (&json!(10.0), &json!(10.0), &json!(4.0))
    );
    assert_eq!((&set["limits_by"], &set["rate"]), (&json!("loopback"), &json!("100/s")));
    let decisions = api.get("/v1/budgets/acme-key/decisions").await.ok();
    let last = &decisions["decisions"][0];
    assert_eq!((&last["from_per_s"], &last["to_per_s"]), (&json!(20.0), &json!(10.0)));
    assert_eq!(last["cause"], "limits set to 10/s, burst 4 by loopback");
    let back = api.delete("/v1/budgets/acme-key").await.ok();
    assert_eq!((&back["ceiling_per_s"], &back["limits_by"]), (&json!(100.0), &json!(null)));
    for (body, field) in [
        ("{}", "rate"),
        (r#"{"rate":"fast"}"#, "rate"),
        (r#"{"burst":0}"#, "burst"),
        (r#"{"rat":"1/s"}"#, "rat"),
        (r#"{"floor":"200/s"}"#, "floor"),
    ] {
        assert_eq!(api.put("/v1/budgets/acme-key", body).await.problem(400)["field"], field, "{body}");
    }
}

#[tokio::test]
async fn explain_names_the_term_that_binds() {
    let api = Api::start();
    let empty = api.get("/v1/queues/bulk/explain").await.ok();
    assert_eq!((&empty["term"], &empty["earliest"]), (&json!("empty"), &json!(null)));
    api.push("bulk", &["a", "b"]).await;
    assert_eq!(api.get("/v1/queues/bulk/explain").await.ok()["term"], "");
    api.post("/v1/queues/bulk/pause", "").await.ok();
    let held = api.get("/v1/queues/bulk/explain?key=b").await.ok();
    assert_eq!(
        (&held["term"], &held["state"], &held["rank"]),
        (&json!("hold:pause"), &json!("queued"), &json!(1))
    );
    assert_eq!(held["words"], "a person paused it; resume lifts that; 1 stand before it");
    let later = r#"{"class":"lifecycle","key":"s","payload":1,"not_before":"2030-01-01T00:00:00Z"}"#;
    api.post("/v1/jobs", later).await;
    let due = api.get("/v1/queues/lifecycle/explain?key=s").await.ok();
    assert_eq!((&due["term"], &due["earliest"]), (&json!("not_due"), &json!("2030-01-01T00:00:00.000Z")));
    assert_eq!(api.get("/v1/queues/bulk/explain?key=x").await.problem(404)["field"], "key");
}

#[tokio::test]
async fn an_alert_names_what_a_person_should_look_at() {
    let api = Api::start();
    assert_eq!(api.get("/v1/alerts").await.ok(), json!({ "alerts": [] }));
    api.die("bulk", &["a", "b"], &End { code: "999", outcome: "unknown", ..End::DEFERRED }).await;
    let alerts = api.get("/v1/alerts").await.ok();
    let alert = &alerts["alerts"][0];
    assert_eq!(
        (&alert["kind"], &alert["on"], &alert["value"]),
        (&json!("unknown_code"), &json!("bulk"), &json!(2.0))
    );
}
