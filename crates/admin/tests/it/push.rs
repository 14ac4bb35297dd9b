use crate::support::*;
use paceline_core::JobKey;
use paceline_store::{Record, Store};
use serde_json::{Value, json};

#[tokio::test]
async fn a_single_job_is_created_and_stored_byte_for_byte() {
    let api = Api::start();
    let document = r#"{ "class":"bulk",  "key": "a/b ü", "payload": {"n": 12345678901234567890123, "b":1, "a":2},
        "not_before": "2030-01-01T10:00:00+01:00", "tags": {"campaign": "launch"}, "later": [1.50] }"#;
    let answer = api.post("/v1/jobs", format!("\n {document} \n")).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!(answer.header("location"), "/v1/jobs/bulk/a%2Fb%20%C3%BC");
    let row = json!({ "class": "bulk", "key": "a/b ü", "status": "created", "not_before": "2030-01-01T09:00:00.000Z" });
    assert_eq!(answer.json(), row);
    let stored = api.state.store.get(&api.class("bulk"), "a/b ü").await.unwrap().unwrap();
    let Record::Job(job) = stored.record else { panic!("it can be read") };
    assert_eq!(String::from_utf8(job.document).unwrap(), document);
    assert_eq!((job.key, job.campaign.as_str()), (JobKey::new("a/b ü").unwrap(), "launch"));
}

#[tokio::test]
async fn a_job_without_a_key_gets_a_uuid_of_its_own() {
    let api = Api::start();
    let push = || api.post("/v1/jobs", r#"{"class":"bulk","payload":1}"#);
    let (first, second) = (push().await.json(), push().await.json());
    assert_eq!(first["key"].as_str().unwrap().len(), 36, "{first}");
    assert_ne!(first["key"], second["key"]);
}

/// failures 67: never silently nothing.
#[tokio::test]
async fn a_repeat_is_a_duplicate_with_the_stored_state_whatever_the_order_of_its_fields() {
    let api = Api::start();
    api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":{"a":1,"b":[2]}}"#).await;
    let repeat = r#"{ "payload": { "b": [ 2 ], "a": 1.0 }, "key": "k", "class": "bulk" }"#;
    let repeat = repeat.replace("1.0", "1");
    let answer = api.post("/v1/jobs", repeat.clone()).await.ok();
    assert_eq!((&answer["status"], &answer["state"]), (&json!("duplicate"), &json!("queued")));
    api.end("bulk", &End::DEFERRED).await;
    let answer = api.post("/v1/jobs", repeat).await.ok();
    assert_eq!((&answer["status"], &answer["state"]), (&json!("duplicate"), &json!("deferred")));
}

/// failures 68: 422 even while the first is under way, and nothing is overwritten.
#[tokio::test]
async fn the_same_key_with_other_content_is_a_conflict() {
    let api = Api::start();
    api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":1}"#).await;
    let problem = api.post("/v1/jobs", r#"{"class":"bulk","key":"k","payload":2}"#).await.problem(422);
    assert_eq!(problem["type"], "urn:paceline:problem:conflict");
    assert_eq!((&problem["field"], &problem["state"]), (&json!("key"), &json!("queued")));
    let shown = api.get("/v1/jobs/bulk/k").await.ok();
    assert_eq!(shown["document"]["payload"], 1);
    let other_class = api.post("/v1/jobs", r#"{"class":"lifecycle","key":"k","payload":2}"#).await;
    assert_eq!(other_class.status, 201, "keys are scoped by class");
}

#[tokio::test]
async fn an_array_is_answered_item_by_item_in_order() {
    let api = Api::start();
    let items = json!([
        { "class": "bulk", "key": "a", "payload": 1 },
        { "class": "nope", "key": "b", "payload": 1 },
        { "class": "lifecycle", "key": "a", "payload": 1 },
        { "class": "bulk", "key": "a", "payload": 1 },
        { "class": "bulk", "key": "a", "payload": 2 },
        7,
        { "class": "bulk", "key": "c", "payload": "x".repeat(20_000) },
    ]);
    let answer = api.post("/v1/jobs", items.to_string()).await.ok();
    let words: Vec<(usize, &str)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["index"].as_u64().unwrap() as usize, row["status"].as_str().unwrap()))
        .collect();
    let wanted = ["created", "invalid", "created", "duplicate", "conflict", "invalid", "invalid"];
    assert_eq!(words, wanted.into_iter().enumerate().collect::<Vec<_>>());
    let counts = ["created", "duplicate", "conflict", "invalid", "unavailable"].map(|word| &answer[word]);
    assert_eq!(counts, [2, 1, 1, 3, 0]);
    let fields = [1, 5, 6].map(|index: usize| answer["results"][index]["error"]["field"].as_str().unwrap());
    assert_eq!(fields, ["class", "document", "document"]);
    assert!(answer["results"][6]["error"]["problem"].as_str().unwrap().contains("20000"), "{answer}");
}

#[tokio::test]
async fn a_thousand_items_go_in_chunks_and_keep_their_places() {
    let api = Api::start();
    let items: Vec<Value> = (0..1_000)
        .map(|n| json!({ "class": "bulk", "key": format!("k{n}"), "payload": "x".repeat(n % 7 * 900) }))
        .collect();
    let answer = api.post("/v1/jobs", Value::from(items).to_string()).await.ok();
    assert_eq!(answer["created"], 1_000);
    for (index, row) in answer["results"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&row["index"], &row["key"]), (&json!(index), &json!(format!("k{index}"))));
    }
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["queued"], 1_000);
}

#[tokio::test]
async fn one_bad_line_of_ndjson_stops_no_other() {
    let api = Api::start();
    let lines = "{\"class\":\"bulk\",\"key\":\"a\",\"payload\":1}\r\n\n{\"class\":\n\
                 {\"class\":\"bulk\",\"key\":\"b\",\"payload\": 1 , \"x\": 2 }";
    let answer = api.ndjson(lines).await.ok();
    let rows: Vec<(u64, &str)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["index"].as_u64().unwrap(), row["status"].as_str().unwrap()))
        .collect();
    assert_eq!(rows, [(0, "created"), (2, "invalid"), (3, "created")], "the index is the line");
    let stored = api.state.store.get(&api.class("bulk"), "b").await.unwrap().unwrap();
    let Record::Job(job) = stored.record else { panic!("it can be read") };
    assert_eq!(job.document, br#"{"class":"bulk","key":"b","payload": 1 , "x": 2 }"#);
}

#[tokio::test]
async fn a_body_that_is_no_job_at_all_is_refused_whole() {
    let api = Api::start();
    for body in ["", "7", "\"x\"", "[{\"class\":\"bulk\",\"payload\":1},", "null", "[1] x"] {
        assert_eq!(api.post("/v1/jobs", body).await.problem(400)["field"], "body", "{body:?}");
    }
    assert_eq!(api.ndjson("").await.ok()["results"], json!([]));
    assert_eq!(api.post("/v1/jobs", "[]").await.ok()["results"], json!([]));
    assert_eq!(api.snapshot(), [""; 0]);
}
