//! What leaves: address, headers, send id, credential; and what must not.

use crate::peer::{OK, Peer, broken, http, job, provider, send, transport};
use axum::Router;
use axum::extract::{Request, State};
use paceline_core::{Answer, Transport};
use paceline_transport::{Credential, HttpTransport, TransportError};

/// An ordinary server that answers with the head of what it got.
async fn mirror() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v2/", listener.local_addr().unwrap());
    let answer = |State(()): State<()>, request: Request| async move {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 10_000).await.unwrap();
        let headers = head.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let headers = headers.collect::<Vec<_>>().join("\n");
        format!("{} {}\n{headers}\n\n{}", head.method, head.uri, String::from_utf8(body.into()).unwrap())
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer).with_state(())).into_future());
    base_url
}

/// What a peer hears of a job that presents `credential`; an answer would not show it.
async fn heard(credential: Credential, path: &str) -> String {
    let peer = Peer::answering(OK).await;
    let transport = HttpTransport::new(&peer.provider(), credential).unwrap();
    http(send(&transport, job(path)).await);
    peer.heard().remove(0)
}

#[tokio::test]
async fn a_job_leaves_as_one_plain_request() {
    let peer = Peer::answering(OK).await;
    let transport = peer.transport();
    assert_eq!(transport.max_batch(), 1);
    assert_eq!(http(send(&transport, job("/v1/send")).await).body, b"ok");
    let heard = peer.heard().remove(0);
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"to":"ada@example.org"}"#);
    let mut lines: Vec<&str> = head.lines().collect();
    lines[1..].sort_unstable();
    let host = format!("host: {}", peer.address);
    let agent = concat!("user-agent: paceline/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        lines,
        [
            "POST /v1/send HTTP/1.1",
            "accept: */*",
            "content-length: 24",
            "content-type: application/json",
            &host,
            "idempotency-key: 6f1a0c5e-send-id",
            agent,
        ]
    );
}

#[tokio::test]
async fn an_empty_body_leaves_with_its_length() {
    let peer = Peer::answering(OK).await;
    let mut job = job("/");
    job.request.body.clear();
    job.request.method = "PUT".into();
    http(send(&peer.transport(), job).await);
    let heard = peer.heard().remove(0);
    assert!(heard.starts_with("PUT / ") && heard.contains("\r\ncontent-length: 0\r\n"), "{heard}");
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let peer = Peer::answering(OK).await;
    let mut job = job("/");
    job.request.body = vec![b'x'; 3_000_000];
    http(send(&peer.transport(), job).await);
    assert_eq!(peer.heard()[0].split_once("\r\n\r\n").unwrap().1.len(), 3_000_000);
}

#[tokio::test]
async fn several_jobs_get_their_answers_in_order() {
    let transport = transport(&provider(&mirror().await));
    let jobs: Vec<_> = (0..20).map(|n| job(&format!("/{n}"))).collect();
    for (n, answer) in transport.send(&jobs).await.into_iter().enumerate() {
        let body = String::from_utf8(http(answer).body).unwrap();
        assert!(body.starts_with(&format!("POST /v2/{n}\n")), "{body}");
    }
}

#[tokio::test]
async fn a_path_keeps_its_query_and_the_prefix_of_the_base() {
    let transport = transport(&provider(&mirror().await));
    for (path, target) in [
        ("/send?b=2&a=%20x", "/v2/send?b=2&a=%20x"),
        ("/", "/v2/"),
        // What looks like another host stays a path on the provider's own.
        ("//evil.example/x", "/v2/evil.example/x"),
        ("/http://evil.example/x", "/v2/http://evil.example/x"),
    ] {
        let seen = String::from_utf8(http(send(&transport, job(path)).await).body).unwrap();
        assert_eq!(seen.lines().next(), Some(format!("POST {target}").as_str()));
    }
}

#[tokio::test]
async fn every_form_of_credential_arrives() {
    let basic = |user: &str, secret: &str| Credential::Basic { user: user.into(), secret: secret.into() };
    for (credential, line) in [
        (Credential::Bearer("sk 1/u".into()), "authorization: Bearer sk 1/u"),
        (basic("Aladdin", "open sesame"), "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        (basic("sk_1", ""), "authorization: Basic c2tfMTo="),
        (Credential::Header { name: "X-Api-Key".into(), secret: "sk_1".into() }, "x-api-key: sk_1"),
    ] {
        let heard = heard(credential, "/").await;
        assert!(heard.lines().any(|heard| heard == line), "{line}: {heard}");
    }
    for (path, target) in
        [("/send", "/send?key=a%26b+%C3%BC"), ("/send?x=1%20", "/send?x=1%20&key=a%26b+%C3%BC")]
    {
        let heard = heard(Credential::Query { name: "key".into(), secret: "a&b ü".into() }, path).await;
        assert_eq!(heard.lines().next(), Some(format!("POST {target} HTTP/1.1").as_str()));
        assert!(!heard.contains("authorization"));
    }
    assert!(!heard(Credential::None, "/").await.contains("authorization"));
}

#[tokio::test]
async fn a_job_cannot_speak_for_the_transport() {
    let peer = Peer::answering(OK).await;
    let credential = Credential::Header { name: "x-api-key".into(), secret: "ours".into() };
    let transport = HttpTransport::new(&peer.provider(), credential).unwrap();
    let mut job = job("/");
    for (name, value) in [("x-api-key", "theirs"), ("idempotency-key", "theirs"), ("content-length", "1")] {
        job.request.headers.push((name.into(), value.into()));
    }
    http(send(&transport, job).await);
    let heard = peer.heard().remove(0);
    assert!(heard.contains("x-api-key: ours") && !heard.contains("theirs"), "{heard}");
    assert!(heard.ends_with("\r\n\r\n{\"to\":\"ada@example.org\"}"), "{heard}");
}

#[tokio::test]
async fn the_send_id_is_the_same_on_every_attempt_and_absent_where_not_wanted() {
    let peer = Peer::answering(OK).await;
    let transport = peer.transport();
    for _ in 0..3 {
        http(send(&transport, job("/")).await);
    }
    assert!(peer.heard().iter().all(|heard| heard.contains("\r\nidempotency-key: 6f1a0c5e-send-id\r\n")));
    let silent = transport_without_send_id(&peer);
    http(send(&silent, job("/")).await);
    assert!(!peer.heard()[3].contains("6f1a0c5e-send-id"));
}

fn transport_without_send_id(peer: &Peer) -> HttpTransport {
    let mut provider = peer.provider();
    provider.idempotency_header = None;
    transport(&provider)
}

/// failures 98: if one slips through the door, nothing of it reaches the wire.
#[tokio::test]
async fn a_header_that_would_forge_another_never_leaves() {
    let peer = Peer::answering(OK).await;
    let transport = peer.transport();
    for (name, value) in [
        ("x-tag", "a\r\nX-Injected: 1"),
        ("x-tag", "a\nb"),
        ("x-tag", "a\0b"),
        ("x-tag", "عبدالله"),
        ("x tag", "a"),
        ("x-tag\r\nx-injected", "a"),
        ("", "a"),
    ] {
        let mut job = job("/");
        job.request.headers.push((name.into(), value.into()));
        let answer = send(&transport, job).await;
        assert_eq!(broken(&answer), ("not_sent", "request"), "{name:?} {value:?}");
    }
    let mut job = job("/");
    job.request.headers.push(("x-tag".into(), "1:2".into()));
    http(send(&transport, job).await);
    assert_eq!(peer.heard().len(), 1);
}

/// failures 97
#[tokio::test]
async fn a_path_to_another_host_and_a_method_that_is_none_never_leave() {
    let peer = Peer::answering(OK).await;
    let transport = peer.transport();
    let elsewhere = send(&transport, job("\\evil.example/x")).await;
    assert_eq!(broken(&elsewhere), ("not_sent", "request"));
    let mut split = job("/");
    split.request.method = "POST /x HTTP/1.1\r\n".into();
    assert_eq!(broken(&send(&transport, split).await), ("not_sent", "request"));
    let mut odd = job("/");
    odd.send_id = "a\r\nb".into();
    match send(&transport, odd).await {
        Answer::NotSent { phase: "request", error } => assert!(error.len() <= 200, "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.heard().len(), 0);
}

#[tokio::test]
async fn a_send_id_header_that_cannot_be_one_is_found_at_start() {
    let mut provider = provider("http://127.0.0.1:1");
    for name in ["x y", "", "content-length"] {
        provider.idempotency_header = Some(name.into());
        let error = HttpTransport::new(&provider, Credential::None).unwrap_err();
        let expected = matches!(error, TransportError::SettingUnusable { setting: "idempotency_header", .. });
        assert!(expected, "{error}");
    }
}
