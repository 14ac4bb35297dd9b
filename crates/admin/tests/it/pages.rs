use crate::support::*;
use axum::body::Body;
use axum::http::Request;
use serde_json::json;

const PAGES: [&str; 7] = [
    "/",
    "/classes/bulk",
    "/dead-letters",
    "/dead-letters/replay?class=bulk",
    "/budgets",
    "/budgets/acme-key",
    "/alerts",
];

/// A form as a browser sends it from one of our own pages.
fn form(path: &str, body: &str) -> Request<Body> {
    let mut request = with_header(request("POST", path, body.to_owned()), "origin", "http://localhost");
    request.headers_mut().insert("host", "localhost".parse().unwrap());
    with_header(request, "content-type", "application/x-www-form-urlencoded")
}

fn as_of(request: Request<Body>, cookie: &str) -> Request<Body> {
    with_header(request, "cookie", cookie)
}

/// The text without tags, so that a number can be looked for where a person reads it.
fn text(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Signs in and gives the cookie.
async fn sign_in(api: &Api, role: &str) -> String {
    let answer = api.send(form("/sign-in", &format!("token={role}-token&next=%2Fbudgets"))).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/budgets"));
    let set = answer.header("set-cookie");
    assert!(set.contains("; HttpOnly; SameSite=Strict") && !set.contains("-token"), "{set}");
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn every_page_is_html_under_a_strict_policy_and_never_cached() {
    let api = Api::start();
    api.die("bulk", &["d"], &End::DEFERRED).await;
    for path in PAGES.iter().copied().chain(["/job?class=bulk&key=d"]) {
        let answer = api.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        for inline in ["<script>", "<style", " style=", " onclick="] {
            assert!(!answer.text.contains(inline), "{path} has {inline}");
        }
        for landmark in ["<nav aria-label=", "<main id=\"main\"", "lang=\"en\"", "<h1"] {
            assert!(answer.text.contains(landmark), "{path} lacks {landmark}");
        }
    }
}

#[tokio::test]
async fn pages_show_the_numbers_that_the_store_has() {
    let api = Api::start();
    let fresh = text(&api.get("/budgets").await.text);
    assert!(fresh.contains("acme-key 20/s pace of 100/s"), "{fresh}");
    api.die("bulk", &["f1", "f2", "f3"], &End::FAILED).await;
    api.die("bulk", &["d1", "d2"], &End::DEFERRED).await;
    api.die("lifecycle", &["u1"], &End::UNCONFIRMED).await;
    api.push("bulk", &["q1", "q2", "q3", "q4"]).await;
    api.post("/v1/jobs", r#"{"class":"bulk","key":"s","payload":1,"not_before":"2030-01-01T00:00:00Z"}"#)
        .await;
    let overview = text(&api.get("/").await.text);
    // queued, of these scheduled, pending, in flight, submitted, failed, expired, cancelled, deferred, unconfirmed
    assert!(overview.contains("bulk 5 1 0 0 0 3 0 0 2 0"), "{overview}");
    assert!(overview.contains("lifecycle 0 0 0 0 0 0 0 0 0 1"), "{overview}");
    let class = text(&api.get("/classes/bulk").await.text);
    assert!(class.contains("queued 5 of these scheduled 1") && class.contains("deferred 2"), "{class}");
    assert!(class.contains("422 terminal failed 3"), "{class}");
    let list = text(&api.get("/dead-letters?class=bulk&state=failed").await.text);
    assert!(list.contains("3 jobs") && list.contains("f1 bulk failed"), "{list}");
    let job = text(&api.get("/job?class=bulk&key=d1").await.text);
    assert!(job.contains("503 transient: busy") && job.contains("Replay this job"), "{job}");
}

#[tokio::test]
async fn what_a_producer_wrote_is_text_everywhere() {
    let api = Api::start();
    let (key, tag) = ("<script>alert(1)</script>", "\"><img src=x onerror=a()>");
    let job = json!({ "class": "bulk", "key": key, "payload": { "x": key }, "tags": { "campaign": tag } });
    api.post("/v1/jobs", job.to_string()).await;
    api.end("bulk", &End { reason: "<b>no</b>", code: "<i>", ..End::DEFERRED }).await;
    let query = "class=bulk&key=%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    for path in [
        "/",
        "/classes/bulk",
        "/dead-letters",
        &format!("/job?{query}"),
        "/dead-letters/replay?class=bulk&keys=%3Cb%3E",
    ] {
        let page = api.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        for raw in ["<script>", "<img src=x", "<b>", "<i>"] {
            assert!(!page.text.contains(raw), "{path} holds {raw}");
        }
    }
    let page = api.get("/dead-letters").await.text;
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("&lt;b&gt;no"), "{page}");
    assert!(page.contains("&gt;&lt;img src=x"), "{page}");
}

#[tokio::test]
async fn with_tokens_a_person_signs_in_first() {
    let api = Api::with_tokens();
    let answer = api.get("/classes/bulk").await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/sign-in?next=%2Fclasses%2Fbulk"));
    assert_eq!(api.get("/sign-in").await.status, 200);
    for body in ["token=operator-toke", "token=", ""] {
        let refused = api.send(form("/sign-in", body)).await;
        assert_eq!((refused.status.as_u16(), refused.header("set-cookie")), (401, ""), "{body}");
    }
    let away = api.send(form("/sign-in", "token=viewer-token&next=%2F%2Fevil.example")).await;
    assert_eq!(away.header("location"), "/");
    let cookie = sign_in(&api, "viewer").await;
    for path in PAGES {
        assert_eq!(api.send(as_of(request("GET", path, ""), &cookie)).await.status, 200, "{path}");
    }
    for wrong in [
        cookie.replace("viewer", "operator"),
        format!("{cookie}x"),
        "paceline_session=viewer.99999999999.".to_owned(),
        "paceline_session=viewer".to_owned(),
    ] {
        assert_eq!(api.send(as_of(request("GET", "/", ""), &wrong)).await.status, 303, "{wrong}");
    }
    // The cookie opens pages only, so that a foreign page has nothing to ride on at the API.
    api.send(as_of(request("GET", "/v1/queues", ""), &cookie)).await.problem(401);
    let out = api.send(as_of(form("/sign-out", ""), &cookie)).await;
    assert!(out.header("set-cookie").starts_with("paceline_session=; Path=/; Max-Age=0"));
}

#[tokio::test]
async fn a_viewer_looks_sees_no_payload_and_changes_nothing() {
    let api = Api::with_tokens();
    let job = r#"{"class":"bulk","key":"k","payload":{"secret":"swordfish"}}"#;
    let push = with_header(request("POST", "/v1/jobs", job), "authorization", "Bearer producer-token");
    assert_eq!(api.send(push).await.status, 201);
    api.end("bulk", &End::DEFERRED).await;
    let (viewer, operator) = (sign_in(&api, "viewer").await, sign_in(&api, "operator").await);
    let page = "/job?class=bulk&key=k";
    let seen = api.send(as_of(request("GET", page, ""), &viewer)).await.text;
    assert!(!seen.contains("swordfish") && !seen.contains("no mailbox for ada"), "{seen}");
    assert!(!seen.contains("Replay this job"), "{seen}");
    assert!(api.send(as_of(request("GET", page, ""), &operator)).await.text.contains("swordfish"));
    for (path, body) in POSTS {
        let refused = api.send(as_of(form(path, body), &viewer)).await;
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.text.contains("Viewer needs the role operator"), "{path}: {}", refused.text);
        assert_eq!(api.send(form(path, body)).await.status, 303, "{path} without a session");
    }
    let paused = api.send(as_of(form("/classes/bulk/pause", ""), &operator)).await;
    assert_eq!(paused.header("location"), "/classes/bulk?told=paused");
    let page = text(&api.send(as_of(request("GET", "/classes/bulk?told=paused", ""), &operator)).await.text);
    assert!(page.contains("held: pause") && page.contains("by operator"), "{page}");
}

const POSTS: [(&str, &str); 7] = [
    ("/classes/bulk/pause", "for_s=600"),
    ("/classes/bulk/resume", ""),
    ("/budgets/acme-key/limits", "rate=1%2Fs"),
    ("/budgets/acme-key/limits/drop", ""),
    ("/budgets/acme-key/pause", ""),
    ("/budgets/acme-key/resume", ""),
    ("/dead-letters/replay", "class=bulk"),
];

#[tokio::test]
async fn a_post_of_another_site_is_refused() {
    let api = Api::start();
    api.die("bulk", &["d"], &End::DEFERRED).await;
    let before = api.snapshot();
    for (path, body) in POSTS.into_iter().chain([("/sign-in", "token=x"), ("/sign-out", "")]) {
        for (name, value) in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", ""),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "none"),
            ("host", "evil.example"),
        ] {
            let refused = api.send(with_header(form(path, body), name, value)).await;
            assert_eq!(refused.status, 403, "{path} with {name}: {value}");
        }
    }
    assert_eq!(api.snapshot(), before);
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["deferred"], 1);
    let rebound = with_header(request("GET", "/", ""), "host", "evil.example");
    assert_eq!(api.send(rebound).await.status, 403);
    let behind_a_proxy = with_header(form("/classes/bulk/pause", ""), "sec-fetch-site", "same-origin");
    assert_eq!(api.send(behind_a_proxy).await.status, 303);
}

#[tokio::test]
async fn a_replay_by_form_is_previewed_first_and_moves_the_jobs() {
    let api = Api::start();
    api.die("bulk", &["d1", "d2", "d3"], &End::DEFERRED).await;
    api.die("lifecycle", &["u1", "u2"], &End::UNCONFIRMED).await;
    let preview = text(&api.get("/dead-letters/replay?class=bulk").await.text);
    assert!(preview.contains("3 match") && preview.contains("Replay 3 jobs"), "{preview}");
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["deferred"], 3, "a preview moves nothing");
    let one = api.send(form("/dead-letters/replay", "class=bulk&keys=d2")).await;
    let done = "/dead-letters/replay?class=bulk&finished=true&most=0&seen=1&moved=1&held=0";
    assert_eq!((one.status.as_u16(), one.header("location")), (303, done));
    assert!(text(&api.get(done).await.text).contains("1 job is pending again , 0 held back"));
    api.send(form("/dead-letters/replay", "class=bulk&state=deferred")).await;
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["pending"], 3);
    // What may have been accepted, and would not be recognised, waits for a yes.
    let held = api.send(form("/dead-letters/replay", "class=lifecycle")).await;
    assert!(held.header("location").ends_with("&seen=2&moved=0&held=2"), "{}", held.header("location"));
    let yes = api.send(form("/dead-letters/replay", "class=lifecycle&accept_duplicates=true")).await;
    assert!(yes.header("location").ends_with("&seen=2&moved=2&held=0"), "{}", yes.header("location"));
}

#[tokio::test]
async fn a_long_replay_goes_on_step_by_step() {
    let api = Api::start();
    for part in 0..6 {
        let keys: Vec<String> = (0..200).map(|n| format!("k{part}-{n}")).collect();
        api.die("bulk", &keys.iter().map(String::as_str).collect::<Vec<_>>(), &End::DEFERRED).await;
    }
    let first = api.send(form("/dead-letters/replay", "class=bulk&most=1200")).await;
    let next = first.header("location").to_owned();
    assert!(next.contains("cursor=") && next.ends_with("&most=1200&seen=1000&moved=1000&held=0"), "{next}");
    let page = api.get(&next).await.text;
    assert!(page.contains("data-more") && page.contains("<progress"), "{page}");
    assert!(text(&page).contains("1,000 moved, 0 held back 1,000 of 1,200 looked at"), "{page}");
    let last = api.send(form("/dead-letters/replay", next.split_once('?').unwrap().1)).await;
    assert!(last.header("location").ends_with("finished=true&most=1200&seen=1200&moved=1200&held=0"));
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["pending"], 1_200);
}

/// What is replayed may die again at once and stand behind the others.
#[tokio::test]
async fn a_replay_does_not_chase_what_died_again() {
    let api = Api::start();
    for part in 0..6 {
        let keys: Vec<String> = (0..200).map(|n| format!("k{part}-{n}")).collect();
        api.die("bulk", &keys.iter().map(String::as_str).collect::<Vec<_>>(), &End::DEFERRED).await;
    }
    let first = api.send(form("/dead-letters/replay", "class=bulk&most=1000")).await;
    assert!(first.header("location").contains("finished=true"), "{}", first.header("location"));
    assert_eq!(api.get("/v1/queues/bulk").await.ok()["deferred"], 200);
}

#[tokio::test]
async fn limits_are_changed_by_form_and_a_wrong_one_names_its_field() {
    let api = Api::start();
    let set = api.send(form("/budgets/acme-key/limits", "rate=40%2Fs&burst=&floor=&max_in_flight=7")).await;
    assert_eq!(set.header("location"), "/budgets/acme-key?told=limits");
    let page = text(&api.get("/budgets/acme-key?told=limits").await.text);
    assert!(page.contains("In force: 40/s") && page.contains("set by loopback"), "{page}");
    assert!(page.contains("The new limits are in force"), "{page}");
    let wrong = api.send(form("/budgets/acme-key/limits", "rate=fast%22%3E")).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("value=\"fast&quot;&gt;\""), "{}", wrong.text);
    assert!(wrong.text.contains("aria-invalid=\"true\""), "{}", wrong.text);
    assert!(text(&wrong.text).contains("is not a rate; write it like"), "{}", wrong.text);
    api.send(form("/budgets/acme-key/limits/drop", "")).await;
    assert!(api.get("/v1/budgets/acme-key").await.ok()["limits_by"].is_null());
}

#[tokio::test]
async fn a_page_that_did_not_change_is_not_sent_again() {
    let api = Api::start();
    let fragment = || with_header(request("GET", "/sign-in", ""), "x-paceline-fragment", "1");
    assert_eq!(api.send(fragment()).await.status, 303, "without tokens there is nothing to sign in to");
    let live =
        || with_header(request("GET", "/dead-letters/replay?class=bulk", ""), "x-paceline-fragment", "1");
    let first = api.send(live()).await;
    assert!(first.text.starts_with("<div id=\"page\"") && !first.text.contains("<html"), "{}", first.text);
    let again = api.send(with_header(live(), "if-none-match", first.header("etag"))).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    api.die("bulk", &["d"], &End::DEFERRED).await;
    let changed = api.send(with_header(live(), "if-none-match", first.header("etag"))).await;
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn script_and_style_are_named_by_their_content_and_kept_for_ever() {
    let api = Api::with_tokens();
    let page = api.get("/sign-in").await.text;
    for ending in [".css", ".js", ".svg"] {
        let path =
            page.split('"').find(|text| text.starts_with("/assets/") && text.ends_with(ending)).unwrap();
        let answer = api.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.header("cache-control").contains("immutable"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
    let old = api.get("/assets/paceline-000.css").await;
    assert_eq!((old.status.as_u16(), old.header("cache-control")), (404, "no-store"));
}

#[tokio::test]
async fn an_error_is_a_page_that_says_what_to_do() {
    let mut api = Api::start();
    for (path, status) in [
        ("/classes/nope", 404),
        ("/budgets/nope", 404),
        ("/job?class=bulk&key=nope", 404),
        ("/job?class=bulk", 400),
        ("/dead-letters?state=queued", 400),
        ("/dead-letters?cursor=x", 400),
        ("/dead-letters/replay", 400),
        ("/classes/bulk/pause", 405),
        ("/classes/%FF", 400),
    ] {
        let answer = api.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.header("content-type").starts_with("text/html"), "{path}");
        assert!(answer.text.contains("role=\"alert\""), "{path}: {}", answer.text);
    }
    let large = api.send(form("/sign-in", &format!("token={}", "x".repeat(300_000)))).await;
    assert_eq!(large.status, 413);
    api.redis.kill();
    let away = api.get("/").await;
    assert_eq!(away.status, 503);
    assert!(text(&away.text).contains("Redis is not available"), "{}", away.text);
    assert!(away.text.contains("data-live"), "it asks again by itself");
}
