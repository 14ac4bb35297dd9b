use crate::support::*;
use paceline_admin::serve;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn every_error_is_a_problem_even_where_there_is_no_route() {
    let api = Api::start();
    for path in ["/nope", "/v1", "/v1/nope", "/v1/jobs/bulk", "/v1/jobs/bulk/", "/%FF", "/v1//jobs"] {
        let answer = api.get(path).await;
        answer.problem(if path == "/v1/jobs" { 405 } else { 404 });
    }
    let answer = api.get("/v1/jobs").await;
    answer.problem(405);
    assert_eq!(answer.header("allow"), "POST");
    api.send(request("PUT", "/v1/queues/bulk", "")).await.problem(405);
    api.get("/v1/queues/%FF").await.problem(400);
}

#[tokio::test]
async fn a_body_of_another_kind_is_415() {
    let api = Api::start();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        let push = with_header(request("POST", "/v1/jobs", "{}"), "content-type", kind);
        assert_eq!(api.send(push).await.problem(415)["field"], "content-type", "{kind}");
        let replay = with_header(request("POST", "/v1/replays", "{}"), "content-type", kind);
        api.send(replay).await.problem(415);
    }
    let charset =
        with_header(request("POST", "/v1/jobs", "[]"), "content-type", "Application/JSON; charset=utf-8");
    api.send(charset).await.ok();
}

#[tokio::test]
async fn nothing_is_cached_or_guessed_at() {
    let api = Api::start();
    for path in ["/v1/queues", "/v1/nope", "/livez"] {
        let answer = api.get(path).await;
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
}

#[tokio::test]
async fn a_panic_is_a_500_without_its_words() {
    let api = Api::with(|state| state.readiness = Arc::new(|| panic!("the words of the panic")));
    let answer = api.get("/readyz").await;
    answer.problem(500);
    assert!(!answer.text.contains("words of"), "{}", answer.text);
    assert_eq!(answer.header("cache-control"), "no-store");
    api.get("/livez").await.ok();
}

#[tokio::test]
async fn the_readiness_of_the_process_is_told_with_its_reason() {
    let api = Api::with(|state| state.readiness = Arc::new(|| Some("no claim for 60 s".into())));
    assert_eq!(api.get("/readyz").await.problem(503)["detail"], "no claim for 60 s");
    assert_eq!(Api::start().get("/readyz").await.ok()["status"], "ready");
}

async fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn it_serves_until_it_is_told_to_stop_and_waits_for_no_idle_client() {
    let api = Api::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, api.state.clone(), async {
        let _ = stopped.await;
    }));
    let mut client = TcpStream::connect(address).await.unwrap();
    let live = ask(&mut client, "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    let mut large = TcpStream::connect(address).await.unwrap();
    let head = "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 99999999\r\nconnection: close\r\n\r\n";
    let refused = ask(&mut large, head).await;
    assert!(refused.starts_with("HTTP/1.1 413") && refused.contains("problem+json"), "{refused}");
    let _idle = TcpStream::connect(address).await.unwrap();
    let mut kept = TcpStream::connect(address).await.unwrap();
    kept.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    kept.read_u8().await.unwrap();
    stop.send(()).unwrap();
    let told = Instant::now();
    server.await.unwrap().unwrap();
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
    assert!(TcpStream::connect(address).await.is_err());
}
