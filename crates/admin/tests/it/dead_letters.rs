use crate::support::*;
use serde_json::{Value, json};

fn keys(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn dead_letters_say_what_happened_last_and_carry_no_payload() {
    let api = Api::start();
    api.die("bulk", &["d"], &End::DEFERRED).await;
    api.die("lifecycle", &["u"], &End::UNCONFIRMED).await;
    api.die("bulk", &["f"], &End::FAILED).await;
    let answer = api.get("/v1/dead-letters").await;
    assert!(!answer.text.contains("ada"), "{}", answer.text);
    let page = answer.ok();
    assert_eq!(
        (keys(&page), &page["examined"], &page["next_cursor"]),
        (vec!["d", "u"], &json!(2), &json!(null))
    );
    let first = &page["items"][0];
    let told =
        ["class", "state", "code", "outcome", "reason", "rule"].map(|field| first[field].as_str().unwrap());
    assert_eq!(told, ["bulk", "deferred", "503", "transient", "busy", "http:test"]);
    assert_eq!((&first["attempts"], &first["ambiguous"]), (&json!(1), &json!(false)));
    let failed = api.get("/v1/dead-letters?state=failed").await.ok();
    assert_eq!(keys(&failed), ["f"]);
}

#[tokio::test]
async fn filters_are_by_class_state_code_and_reason() {
    let api = Api::start();
    api.die("bulk", &["d"], &End::DEFERRED).await;
    api.die("bulk", &["d2"], &End { code: "429", reason: "throttled beyond its horizon", ..End::DEFERRED })
        .await;
    api.die("lifecycle", &["u"], &End::UNCONFIRMED).await;
    for (query, wanted) in [
        ("class=bulk", vec!["d", "d2"]),
        ("class=bulk&state=unconfirmed", vec![]),
        ("state=unconfirmed,deferred", vec!["d", "d2", "u"]),
        ("code=429", vec!["d2"]),
        ("reason=throttled%20beyond+its+horizon", vec!["d2"]),
        ("code=429&reason=busy", vec![]),
        ("code=&class=", vec!["d", "d2", "u"]),
    ] {
        let page = api.get(&format!("/v1/dead-letters?{query}")).await.ok();
        assert_eq!((keys(&page), &page["next_cursor"]), (wanted, &json!(null)), "{query}");
    }
    for (query, field) in [
        ("state=queued", "state"),
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("cursor=x", "cursor"),
        ("cods=429", "cods"),
        ("code=1&code=2", "code"),
    ] {
        let problem = api.get(&format!("/v1/dead-letters?{query}")).await.problem(400);
        assert_eq!(problem["field"], field, "{query}");
    }
    assert_eq!(api.get("/v1/dead-letters?class=nope").await.problem(404)["field"], "class");
}

#[tokio::test]
async fn a_cursor_goes_on_where_a_page_ended_even_when_entries_leave() {
    let api = Api::start();
    let all: Vec<String> = (0..7).map(|n| format!("k{n}")).collect();
    api.die("bulk", &all.iter().map(String::as_str).collect::<Vec<_>>(), &End::DEFERRED).await;
    api.die("lifecycle", &["u0", "u1"], &End::UNCONFIRMED).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for turn in 0.. {
        let page = api.get(&format!("/v1/dead-letters?limit=2&cursor={cursor}")).await.ok();
        seen.extend(keys(&page).iter().map(|key| (*key).to_owned()));
        if turn == 0 {
            api.post("/v1/replays", r#"{"class":"bulk","keys":["k0","k1"]}"#).await.ok();
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = next.to_owned();
    }
    let wanted = all.iter().map(String::as_str).chain(["u0", "u1"]).collect::<Vec<_>>();
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn a_call_looks_at_no_more_than_a_thousand_records_and_says_so() {
    let api = Api::start();
    for part in 0..6 {
        let keys: Vec<String> = (0..200).map(|n| format!("k{part}-{n}")).collect();
        api.die("bulk", &keys.iter().map(String::as_str).collect::<Vec<_>>(), &End::DEFERRED).await;
    }
    let first = api.get("/v1/dead-letters?code=nope").await.ok();
    assert_eq!((keys(&first).len(), &first["examined"]), (0, &json!(1_000)));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = api.get(&format!("/v1/dead-letters?code=nope&cursor={cursor}")).await.ok();
    assert_eq!((&second["examined"], &second["next_cursor"]), (&json!(200), &json!(null)));
}

#[tokio::test]
async fn an_unreadable_record_hides_no_other() {
    let api = Api::start();
    api.die("bulk", &["a", "b"], &End::DEFERRED).await;
    api.redis.query::<()>(&[b"SETRANGE", b"paceline:{g}:bulk:job:a", b"0", b"\x09"]);
    let page = api.get("/v1/dead-letters").await.ok();
    assert_eq!(keys(&page), ["a", "b"]);
    assert!(page["items"][0]["problem"].as_str().unwrap().starts_with("record_newer"), "{page}");
}

#[tokio::test]
async fn a_person_says_what_became_of_a_job() {
    let api = Api::start();
    api.die("bulk", &["there", "lost"], &End::UNCONFIRMED).await;
    let confirm = async |body: Value| api.post("/v1/confirmations", body.to_string()).await;
    let said =
        json!({ "class": "bulk", "keys": ["there", "nobody"], "outcome": "accepted", "message_id": "SM1" });
    let rows = confirm(said.clone()).await.ok();
    assert_eq!(rows["results"][0], json!({ "key": "there", "status": "confirmed", "state": "submitted" }));
    assert_eq!(rows["results"][1]["status"], "missing");
    assert_eq!(confirm(said).await.ok()["results"][0]["status"], "moved", "a repeat");
    let job = api.get("/v1/jobs/bulk/there").await.ok();
    assert_eq!(
        (&job["state"], &job["attempts"][0]["message_id"]),
        (&json!("submitted"), &json!("SM1")),
        "{job}"
    );
    assert_eq!(job["attempts"][0]["rule"], "person");
    let again = json!({ "class": "bulk", "keys": ["lost"], "outcome": "not_accepted" });
    assert_eq!(confirm(again).await.ok()["results"][0]["state"], "pending");
    for (body, field) in [
        (json!({ "class": "bulk", "keys": ["a"] }), "outcome"),
        (json!({ "class": "bulk", "keys": ["a"], "outcome": "perhaps" }), "outcome"),
        (json!({ "class": "bulk", "outcome": "accepted" }), "keys"),
        (
            json!({ "class": "bulk", "keys": ["a"], "outcome": "not_accepted", "message_id": "x" }),
            "message_id",
        ),
    ] {
        assert_eq!(confirm(body.clone()).await.problem(400)["field"], field, "{body}");
    }
}
