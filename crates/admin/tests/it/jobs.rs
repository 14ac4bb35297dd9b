use crate::support::*;
use paceline_core::send_id::send_id;
use paceline_core::{JobKey, Name};
use serde_json::{Value, json};

#[tokio::test]
async fn a_job_is_shown_with_all_that_is_known_of_it() {
    let api = Api::start();
    api.die("bulk", &["a/b ü"], &End::DEFERRED).await;
    let shown = api.get("/v1/jobs/bulk/a/b%20%C3%BC").await.ok();
    let id = send_id(DEPLOYMENT, &Name::new("bulk").unwrap(), &JobKey::new("a/b ü").unwrap(), 0);
    assert_eq!((&shown["state"], &shown["key"]), (&json!("deferred"), &json!("a/b ü")));
    assert_eq!(shown["send_id"], id.to_string());
    let counters = json!({ "spent": 1, "throttles": 0, "lapses": 0, "run_of_failures": 0, "attempts": 1 });
    assert_eq!(shown["counters"], counters);
    assert_eq!(
        shown["flags"],
        json!({ "ambiguous": false, "started": false, "cancel": false, "late": false })
    );
    assert_eq!(shown["document"]["payload"], json!({ "secret": "ada" }));
    let attempt = &shown["attempts"][0];
    assert_eq!((&attempt["code"], &attempt["outcome"]), (&json!("503"), &json!("transient")));
    for (at, at_ms) in [("created_at", "created_at_ms"), ("settled_at", "settled_at_ms")] {
        assert!(shown[at].as_str().unwrap().ends_with('Z') && shown[at_ms].is_u64(), "{at}: {shown}");
    }
    assert_eq!(api.get("/v1/jobs/bulk/a%2Fb%20%C3%BC").await.ok(), shown, "an escaped slash is a slash");
    api.push("bulk", &["/x/", "..", "100%25?"]).await;
    for (path, key) in [("//x/", "/x/"), ("/%2Fx%2F", "/x/"), ("/..", ".."), ("/100%2525%3F", "100%25?")] {
        assert_eq!(api.get(&format!("/v1/jobs/bulk{path}")).await.ok()["key"], key);
    }
}

#[tokio::test]
async fn a_document_is_shown_byte_for_byte() {
    let api = Api::start();
    let document = r#"{"class":"bulk","key":"k","payload":{"n":12345678901234567890123,"x":1.50}}"#;
    api.post("/v1/jobs", document).await;
    assert!(api.get("/v1/jobs/bulk/k").await.text.contains(&format!(r#""document":{document}"#)));
}

#[tokio::test]
async fn what_is_not_there_is_404_and_what_cannot_be_a_key_is_400() {
    let api = Api::start();
    assert_eq!(api.get("/v1/jobs/bulk/nope").await.problem(404)["field"], "key");
    assert_eq!(api.get("/v1/jobs/nope/k").await.problem(404)["field"], "class");
    assert_eq!(api.delete("/v1/jobs/bulk/nope").await.problem(404)["field"], "key");
    for key in ["a%0Ab", "%FF", "a%00", &"x".repeat(201)] {
        assert_eq!(api.get(&format!("/v1/jobs/bulk/{key}")).await.problem(400)["field"], "key", "{key}");
    }
    assert_eq!(api.get("/v1/jobs/bulk/k?rwa=1").await.problem(400)["field"], "rwa");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_shown_as_such() {
    let api = Api::start();
    api.push("bulk", &["new", "odd", "gone"]).await;
    api.redis.query::<()>(&[b"SETRANGE", b"paceline:{g}:bulk:job:new", b"0", b"\x09"]);
    api.redis.query::<()>(&[b"SET", b"paceline:{g}:bulk:job:odd", b"\x01?"]);
    api.redis.query::<()>(&[b"DEL", b"paceline:{g}:bulk:job:gone"]);
    for (key, word) in [("new", "record_newer"), ("odd", "record_odd"), ("gone", "record_missing")] {
        let shown = api.get(&format!("/v1/jobs/bulk/{key}")).await.ok();
        assert!(shown["problem"].as_str().unwrap().starts_with(word), "{shown}");
        assert_eq!(shown["state"], "queued");
    }
}

#[tokio::test]
async fn a_waiting_job_is_cancelled_and_a_repeat_says_the_same() {
    let api = Api::start();
    api.push("bulk", &["a/b"]).await;
    let cancelled = api.delete("/v1/jobs/bulk/a/b").await.ok();
    let wanted = json!({ "class": "bulk", "key": "a/b", "status": "cancelled", "state": "cancelled" });
    assert_eq!(cancelled, wanted);
    assert_eq!(api.delete("/v1/jobs/bulk/a/b").await.ok()["state"], "cancelled");
    assert_eq!(api.get("/v1/jobs/bulk/a/b").await.ok()["document"], json!(null), "its receipt is kept");
}

#[tokio::test]
async fn a_job_in_flight_is_marked_and_a_dead_one_refused() {
    let api = Api::start();
    api.die("bulk", &["dead"], &End::DEFERRED).await;
    let problem = api.delete("/v1/jobs/bulk/dead").await.problem(409);
    assert_eq!(problem["state"], "deferred");
    api.push("bulk", &["flying"]).await;
    api.claim_only("bulk").await;
    let answer = api.delete("/v1/jobs/bulk/flying").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["state"]), (202, &json!("in_flight")));
    assert_eq!(api.post("/v1/erase", r#"{"class":"bulk","key":"flying"}"#).await.problem(409)["status"], 409);
}

#[tokio::test]
async fn many_are_cancelled_at_once_each_answered() {
    let api = Api::start();
    let keys: Vec<String> = (0..450).map(|n| format!("k{n}")).collect();
    api.push("bulk", &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut all = keys.clone();
    all.push("nope".into());
    let answer = api.post("/v1/cancel", json!({ "class": "bulk", "keys": all }).to_string()).await.ok();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 451);
    assert!(results[..450].iter().all(|row| row["status"] == "cancelled"));
    assert_eq!(results[450], json!({ "class": "bulk", "key": "nope", "status": "missing", "state": null }));
    let wrong = json!({ "class": "bulk", "keys": ["a", "b\n"] }).to_string();
    assert_eq!(api.post("/v1/cancel", wrong).await.problem(400)["field"], "keys/1");
    for (body, field) in [
        (r#"{"keys":["a"]}"#, "class"),
        (r#"{"class":"bulk"}"#, "keys"),
        (r#"{"class":"bulk","keys":[]}"#, "keys"),
        (r#"{"class":"bulk","keys":[7]}"#, "keys"),
        (r#"{"class":"bulk","keys":["a"],"kyes":[]}"#, "kyes"),
        ("[]", "body"),
    ] {
        assert_eq!(api.post("/v1/cancel", body).await.problem(400)["field"], field, "{body}");
    }
}

#[tokio::test]
async fn an_erased_job_leaves_its_receipt_only() {
    let api = Api::start();
    api.die("bulk", &["k"], &End::FAILED).await;
    let erased = api.post("/v1/erase", r#"{"class":"bulk","key":"k"}"#).await.ok();
    assert_eq!((&erased["status"], &erased["state"]), (&json!("erased"), &json!("failed")));
    let shown = api.get("/v1/jobs/bulk/k").await;
    assert_eq!((&shown.json()["document"], shown.text.contains("ada")), (&json!(null), false));
    assert_eq!(api.post("/v1/erase", r#"{"class":"bulk","key":"x"}"#).await.problem(404)["field"], "key");
}

#[tokio::test]
async fn raw_adds_the_header_in_full_words() {
    let api = Api::start();
    api.die("bulk", &["u"], &End::UNCONFIRMED).await;
    let header = &api.get("/v1/jobs/bulk/u?raw=1").await.ok()["header"];
    let told =
        ["version", "flags", "spent", "attempts", "run", "cost", "expires_at_ms"].map(|word| &header[word]);
    assert_eq!(Value::from(told.map(Clone::clone).to_vec()), json!([1, ["ambiguous"], 1, 1, 0, 1, 0]));
    assert_eq!(header["birth"].as_str().unwrap().len(), 16, "{header}");
    assert!(api.get("/v1/jobs/bulk/u?raw=0").await.ok().get("header").is_none());
    assert_eq!(api.get("/v1/jobs/bulk/u?raw=x").await.problem(400)["field"], "raw");
}
