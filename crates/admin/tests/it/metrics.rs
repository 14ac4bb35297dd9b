use crate::support::*;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;

#[tokio::test]
async fn a_scrape_tells_depths_ages_and_holds_with_closed_labels() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let api = Api::with(|state| state.metrics = Some(recorder.handle()));
    api.die("bulk", &["d"], &End::DEFERRED).await;
    api.push("bulk", &["a", "b"]).await;
    api.post("/v1/budgets/shared/pause", "").await.ok();
    let answer = api.get("/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "paceline_redis_up 1",
        "# TYPE paceline_jobs gauge",
        "paceline_jobs{class=\"bulk\",state=\"queued\"} 2",
        "paceline_jobs{class=\"bulk\",state=\"deferred\"} 1",
        "paceline_jobs{class=\"lifecycle\",state=\"in_flight\"} 0",
        "paceline_oldest_pending_age_seconds{class=\"bulk\"} 0",
        "paceline_oldest_due_age_seconds{class=\"lifecycle\"} 0",
        "paceline_hold{budget=\"shared\",cause=\"pause\"} 1",
        "paceline_hold{class=\"bulk\",cause=\"pause\"} 0",
    ] {
        assert!(answer.text.lines().any(|each| each == line), "{line} is not in\n{}", answer.text);
    }
    let holds =
        answer.text.lines().filter(|line| line.starts_with("paceline_hold{budget=\"shared\"")).count();
    assert_eq!(holds, 6, "a shared budget is told once per cause");
}

#[tokio::test]
async fn while_redis_is_away_a_scrape_still_answers() {
    let mut api = Api::start();
    api.redis.kill();
    let answer = api.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.text.contains("paceline_redis_up 0\n"), "{}", answer.text);
    assert!(!answer.text.contains("paceline_jobs{"));
}

#[tokio::test]
async fn codes_are_summed_over_minutes_and_classes() {
    let api = Api::start();
    api.die("bulk", &["a", "b"], &End::DEFERRED).await;
    api.die("lifecycle", &["c"], &End::DEFERRED).await;
    api.die("bulk", &["f"], &End::FAILED).await;
    let codes = api.get("/v1/codes").await.ok();
    let row = |code, outcome, state, n| json!({ "code": code, "outcome": outcome, "state": state, "n": n });
    let wanted = json!([row("503", "transient", "deferred", 3), row("422", "terminal", "failed", 1)]);
    assert_eq!((&codes["rows"], &codes["minutes"]), (&wanted, &json!(60)));
    let bulk = api.get("/v1/codes?class=bulk&minutes=2").await.ok();
    assert_eq!(bulk["rows"][0]["n"], 2);
    assert_eq!(api.get("/v1/codes?minutes=0").await.problem(400)["field"], "minutes");
    assert_eq!(api.get("/v1/codes?class=nope").await.problem(404)["field"], "class");
}
