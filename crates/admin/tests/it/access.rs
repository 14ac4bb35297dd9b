use crate::support::*;

/// Every route, and the least role it takes.
const ROUTES: [(&str, &str, &str); 17] = [
    ("GET", "/livez", ""),
    ("GET", "/readyz", ""),
    ("GET", "/metrics", "viewer"),
    ("GET", "/v1/queues", "viewer"),
    ("GET", "/v1/queues/bulk", "viewer"),
    ("GET", "/v1/jobs/bulk/k", "viewer"),
    ("GET", "/v1/dead-letters", "viewer"),
    ("GET", "/v1/codes", "viewer"),
    ("POST", "/v1/jobs", "producer"),
    ("POST", "/v1/cancel", "producer"),
    ("DELETE", "/v1/jobs/bulk/k", "producer"),
    ("POST", "/v1/erase", "operator"),
    ("POST", "/v1/replays", "operator"),
    ("POST", "/v1/queues/bulk/pause", "operator"),
    ("POST", "/v1/queues/bulk/resume", "operator"),
    ("POST", "/v1/budgets/acme-key/pause", "operator"),
    ("POST", "/v1/budgets/acme-key/resume", "operator"),
];

#[tokio::test]
async fn every_route_takes_its_role_and_those_above() {
    let api = Api::with_tokens();
    let rank = |role: &str| ["", "viewer", "producer", "operator"].iter().position(|each| *each == role);
    for (method, path, needed) in ROUTES {
        for role in ["", "viewer", "producer", "operator"] {
            let mut request = request(method, path, "");
            if !role.is_empty() {
                request = with_header(request, "authorization", &format!("Bearer {role}-token"));
            }
            let answer = api.send(request).await;
            if rank(role) >= rank(needed) {
                assert!(![401, 403].contains(&answer.status.as_u16()), "{method} {path} as {role:?}");
            } else {
                answer.problem(if role.is_empty() { 401 } else { 403 });
            }
        }
    }
}

#[tokio::test]
async fn a_token_that_is_not_known_is_401_with_a_challenge() {
    let api = Api::with_tokens();
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer operator-toke",
        "Basic operator-token",
        "operator-token",
    ] {
        let answer = api.send(with_header(request("GET", "/v1/queues", ""), "authorization", value)).await;
        answer.problem(401);
        assert!(answer.header("www-authenticate").starts_with("Bearer realm="), "{value}");
    }
    let lower = with_header(request("GET", "/v1/queues", ""), "authorization", "bearer viewer-token");
    assert_eq!(api.send(lower).await.status, 200, "the scheme has no case");
}

#[tokio::test]
async fn no_answer_holds_a_token_and_no_viewer_sees_a_payload() {
    let api = Api::with_tokens();
    let as_role = |method: &str, path: &str, role: &str, body: String| {
        api.send(with_header(request(method, path, body), "authorization", &format!("Bearer {role}-token")))
    };
    let job = r#"{"class":"bulk","key":"k","payload":{"secret":"ada"},"request":{"headers":{"x":"ada"}}}"#;
    assert_eq!(as_role("POST", "/v1/jobs", "producer", job.into()).await.status, 201);
    api.end("bulk", &End::FAILED).await;
    for (method, path, _) in ROUTES {
        let answer = as_role(method, path, "viewer", "{}".into()).await;
        assert!(!answer.text.contains("-token"), "{method} {path}: {}", answer.text);
        assert!(!answer.text.contains("ada"), "{method} {path}: {}", answer.text);
    }
    let shown = as_role("GET", "/v1/jobs/bulk/k", "viewer", String::new()).await.ok();
    assert_eq!((&shown["payload_hidden"], &shown["document"]["key"]), (&true.into(), &"k".into()));
    let whole = as_role("GET", "/v1/jobs/bulk/k", "producer", String::new()).await.ok();
    assert_eq!(whole["document"]["payload"]["secret"], "ada");
}

#[tokio::test]
async fn a_hold_carries_the_name_of_the_token_that_put_it_there() {
    let api = Api::with_tokens();
    let pause =
        with_header(request("POST", "/v1/queues/bulk/pause", ""), "authorization", "Bearer operator-token");
    assert_eq!(api.send(pause).await.ok()["hold"]["by"], "operator");
}

/// Without tokens the listener is on loopback, where every page in the operator's browser is too.
#[tokio::test]
async fn without_tokens_a_foreign_page_or_a_rebound_name_is_refused() {
    let api = Api::start();
    let pause = |host: &str, origin: &str| {
        let mut request = with_header(request("POST", "/v1/queues/bulk/pause", ""), "host", host);
        if !origin.is_empty() {
            request = with_header(request, "origin", origin);
        }
        api.send(request)
    };
    for (host, origin) in [
        ("evil.example", ""),
        ("evil.example:8700", "http://evil.example:8700"),
        ("127.0.0.1:8700", "http://evil.example"),
        ("127.0.0.1:8700", "http://localhost:3000"),
        ("127.0.0.1:8700", "null"),
    ] {
        pause(host, origin).await.problem(403);
    }
    let rebound = with_header(request("GET", "/v1/jobs/bulk/k", ""), "host", "evil.example");
    api.send(rebound).await.problem(403);
    assert!(api.get("/v1/queues/bulk").await.ok()["hold"].is_null());
    pause("127.0.0.1:8700", "").await.ok();
    pause("localhost:8700", "http://localhost:8700").await.ok();
}
