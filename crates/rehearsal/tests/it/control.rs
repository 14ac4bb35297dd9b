//! The sandbox's own paths.

use crate::support::{client, json_of, sandbox, send, status};
use paceline_rehearsal::{LedgerEntry, LedgerSummary, Sandbox, Scenario};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

fn ledger(client: &Client, sandbox: &Sandbox, query: &str) -> RequestBuilder {
    client.get(format!("{}/_sandbox/ledger{query}", sandbox.base_url()))
}

fn patch(client: &Client, sandbox: &Sandbox, patch: &Value) -> RequestBuilder {
    client.put(format!("{}/_sandbox/scenario", sandbox.base_url())).json(patch)
}

#[tokio::test]
async fn the_ledgers_totals_are_flat_numbers() {
    let sandbox = sandbox(|s| s.burst = 2).await;
    let client = client();
    for send_id in ["a", "a", "b"] {
        status(send(&client, &sandbox, send_id)).await;
    }
    let (code, body) = json_of(ledger(&client, &sandbox, "")).await;
    let expected = json!({
        "requests": 3, "throttled": 1, "refused": 0, "accepted": 1, "delivered": 1, "duplicates": 0,
        "repeats_deduplicated": 1, "unanswered": 0,
    });
    assert_eq!((code, body), (200, expected));
}

#[tokio::test]
async fn the_ledger_is_read_page_by_page() {
    let sandbox = sandbox(|_| {}).await;
    let client = client();
    for send_id in ["a", "b", "c", "d", "e"] {
        status(send(&client, &sandbox, send_id)).await;
    }
    let mut cursor = json!(0);
    let mut seen = Vec::new();
    while !cursor.is_null() {
        let (_, page) = json_of(ledger(&client, &sandbox, &format!("?full=1&limit=2&cursor={cursor}"))).await;
        let summary: LedgerSummary = serde_json::from_value(page.clone()).unwrap();
        assert_eq!(summary.accepted, 5);
        let entries: Vec<LedgerEntry> = serde_json::from_value(page["entries"].clone()).unwrap();
        seen.extend(entries);
        cursor = page["next_cursor"].clone();
    }
    assert_eq!(seen, sandbox.ledger().entries);
    let (_, beyond) = json_of(ledger(&client, &sandbox, "?full=1&cursor=99")).await;
    assert_eq!((&beyond["entries"], &beyond["next_cursor"]), (&json!([]), &Value::Null));
}

#[tokio::test]
async fn a_page_shows_no_secret() {
    let sandbox = sandbox(|_| {}).await;
    let client = client();
    for credential in ["Bearer sk_live_0123456789abcdef", "0123456789abcdefghij", "Bearer bulk"] {
        status(client.post(sandbox.base_url()).header("authorization", credential)).await;
    }
    let (_, page) = json_of(ledger(&client, &sandbox, "?full=1")).await;
    let shown: Vec<_> =
        page["entries"].as_array().unwrap().iter().map(|entry| &entry["credential"]).collect();
    assert_eq!(shown, ["Bearer …cdef", "…ghij", "Bearer bulk"]);
}

#[tokio::test]
async fn a_query_that_is_no_number_names_its_field() {
    let sandbox = sandbox(|_| {}).await;
    let (code, problem) = json_of(ledger(&client(), &sandbox, "?full=1&cursor=-1")).await;
    assert_eq!((code, &problem["field"]), (400, &json!("cursor")));
}

#[tokio::test]
async fn the_scenario_changes_while_it_runs_without_a_fresh_burst() {
    let sandbox = sandbox(|s| s.burst = 1).await;
    let client = client();
    assert_eq!(status(send(&client, &sandbox, "a")).await, 202);
    assert_eq!(status(send(&client, &sandbox, "b")).await, 429);
    let (code, now) =
        json_of(patch(&client, &sandbox, &json!({ "burst": 500, "throttle_status": 503 }))).await;
    assert_eq!((code, &now["burst"], &now["rate_per_s"]), (200, &json!(500), &json!(0.0)));
    assert_eq!(status(send(&client, &sandbox, "b")).await, 503);
    assert_eq!(sandbox.ledger().entry("b").unwrap().throttled, 2, "the ledger stays");
    assert_eq!(sandbox.scenario().burst, 500);
}

#[tokio::test]
async fn a_whole_scenario_can_be_put_back_as_it_was_read() {
    let sandbox = sandbox(|_| {}).await;
    let client = client();
    let url = format!("{}/_sandbox/scenario", sandbox.base_url());
    let (_, whole) = json_of(client.get(&url)).await;
    json_of(patch(&client, &sandbox, &json!({ "always": { "status": 500 }, "latency_ms": 1 }))).await;
    assert_eq!(sandbox.scenario().latency_ms, 1);
    let (code, _) = json_of(patch(&client, &sandbox, &whole)).await;
    assert_eq!((code, sandbox.scenario()), (200, serde_json::from_value::<Scenario>(whole).unwrap()));
    assert_eq!(sandbox.scenario().always, None);
}

#[tokio::test]
async fn a_bad_patch_names_its_field_and_changes_nothing() {
    let sandbox = sandbox(|_| {}).await;
    let client = client();
    let before = sandbox.scenario();
    for (bad, field) in [
        (json!({ "latency_ms": 5, "rate_per_s": -1 }), "rate_per_s"),
        (json!({ "latency_ms": 5, "retry_after": "tomorrow" }), "retry_after"),
        (json!({ "latency_ms": 5, "rate": 3 }), "rate"),
        (json!([1]), "scenario"),
    ] {
        let response = patch(&client, &sandbox, &bad).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let problem: Value = response.json().await.unwrap();
        assert_eq!((&problem["status"], &problem["field"]), (&json!(400), &json!(field)), "{problem}");
        assert_eq!(sandbox.scenario(), before);
    }
    let (code, problem) =
        json_of(client.put(format!("{}/_sandbox/scenario", sandbox.base_url())).body("{")).await;
    assert_eq!((code, &problem["field"]), (400, &json!("scenario")));
}

#[tokio::test]
async fn a_reset_starts_afresh_with_the_scenario_in_force() {
    let sandbox = sandbox(|s| s.burst = 1).await;
    let client = client();
    assert_eq!(status(send(&client, &sandbox, "a")).await, 202);
    assert_eq!(status(send(&client, &sandbox, "b")).await, 429);
    assert_eq!(status(client.post(format!("{}/_sandbox/reset", sandbox.base_url()))).await, 204);
    assert_eq!(sandbox.summary(), LedgerSummary::default());
    assert_eq!(status(send(&client, &sandbox, "b")).await, 202);
    assert_eq!(sandbox.scenario().burst, 1);
}

#[tokio::test]
async fn the_sandboxs_own_paths_are_no_sends() {
    let sandbox = sandbox(|_| {}).await;
    let client = client();
    let (code, problem) = json_of(client.post(format!("{}/_sandbox/nothing", sandbox.base_url()))).await;
    assert_eq!((code, &problem["status"]), (404, &json!(404)));
    assert_eq!(status(client.post(format!("{}/_sandbox/ledger", sandbox.base_url()))).await, 405);
    assert_eq!(sandbox.summary().requests, 0);
}
