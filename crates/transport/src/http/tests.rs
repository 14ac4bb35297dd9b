//! HTTP/2 without TLS, frame by frame: what a peer of that kind does to an attempt.

use super::*;
use paceline_core::request::{Request, RequestForm};
use paceline_core::vocabulary::ProviderRules;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BODY: &[u8] = br#"{"to":"ada@example.org"}"#;

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// SETTINGS with MAX_CONCURRENT_STREAMS = 0.
const NO_STREAMS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0];
/// HEADERS of stream 1 with nothing but `:status 200`, and its end.
const OK: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];

/// RST_STREAM of stream 1.
fn reset(reason: h2::Reason) -> Vec<u8> {
    [&[0, 0, 4, 3, 0, 0, 0, 0, 1], u32::from(reason).to_be_bytes().as_slice()].concat()
}

/// GOAWAY that says no stream was processed.
fn go_away(reason: h2::Reason) -> Vec<u8> {
    [&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0], u32::from(reason).to_be_bytes().as_slice()].concat()
}

/// A peer whose `n`th connection opens with `talk(n).0` and, once a request has arrived, says `talk(n).1`.
async fn peer(talk: impl Fn(usize) -> (Vec<u8>, Vec<u8>) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let bodies = Arc::new(AtomicUsize::new(0));
    let seen = bodies.clone();
    tokio::spawn(async move {
        for n in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(one(stream, talk(n), seen.clone()));
        }
    });
    (base_url, bodies)
}

async fn one(mut stream: TcpStream, (opening, answer): (Vec<u8>, Vec<u8>), bodies: Arc<AtomicUsize>) {
    let mut heard = Vec::new();
    stream.write_all(&opening).await.unwrap();
    while let Ok(1..) = stream.read_buf(&mut heard).await {
        if heard.windows(BODY.len()).any(|window| window == BODY) {
            bodies.fetch_add(1, Ordering::SeqCst);
            heard.clear();
            stream.write_all(&answer).await.unwrap();
        }
    }
}

fn transport(base_url: &str, connect_timeout_ms: u64, first_byte_timeout_ms: u64) -> HttpTransport {
    let provider = Provider {
        base_url: base_url.parse().unwrap(),
        request: RequestForm::default(),
        idempotency_header: None,
        dedup_window_ms: None,
        rules: ProviderRules::default(),
        connect_timeout_ms,
        first_byte_timeout_ms,
        max_answer_bytes: 1_000,
    };
    HttpTransport::with(&provider, &Credential::None, ClientBuilder::http2_prior_knowledge).unwrap()
}

async fn send(transport: &HttpTransport) -> Answer {
    send_within(transport, Duration::from_secs(20)).await
}

async fn send_within(transport: &HttpTransport, deadline: Duration) -> Answer {
    let request =
        Request { method: "POST".into(), path: "/".into(), headers: Vec::new(), body: BODY.to_vec() };
    let job = Outgoing { send_id: "id".into(), request, deadline };
    transport.send(&[job]).await.remove(0)
}

fn phase(answer: &Answer) -> (&'static str, &'static str) {
    match answer {
        Answer::NotSent { phase, .. } => ("not_sent", phase),
        Answer::Unanswered { phase, .. } => ("unanswered", phase),
        Answer::Http(_) => ("http", ""),
    }
}

/// failures 77: what the client would by itself send again, twice.
#[tokio::test]
async fn a_stream_the_peer_refused_was_not_sent_and_is_not_repeated() {
    use h2::Reason;
    for (answer, expected) in [
        (reset(Reason::REFUSED_STREAM), ("not_sent", "refused_stream")),
        (go_away(Reason::NO_ERROR), ("not_sent", "refused_stream")),
        (reset(Reason::INTERNAL_ERROR), ("unanswered", "reset")),
        (reset(Reason::NO_ERROR), ("unanswered", "reset")),
        (go_away(Reason::INTERNAL_ERROR), ("unanswered", "reset")),
        (b"no frame at all".to_vec(), ("unanswered", "reset")),
    ] {
        let (base_url, bodies) = peer(move |_| (SETTINGS.to_vec(), answer.clone())).await;
        let answer = send(&transport(&base_url, 5_000, 5_000)).await;
        assert_eq!(phase(&answer), expected, "{answer:?}");
        assert_eq!(bodies.load(Ordering::SeqCst), 1);
    }
}

/// The request waits in the client while the connection stands: only the gate knows that nothing left.
#[tokio::test]
async fn a_request_that_got_no_stream_was_not_sent() {
    let (base_url, bodies) = peer(|_| (NO_STREAMS.to_vec(), OK.to_vec())).await;
    let transport = transport(&base_url, 300, 5_000);
    let mut answered = 0;
    for _ in 0..3 {
        // The very first may be on its way before the peer's settings are.
        let answer = send(&transport).await;
        match phase(&answer) {
            ("http", _) => answered += 1,
            ("not_sent", "connect" | "refused_stream") => {}
            _ => panic!("{answer:?}"),
        }
        assert_eq!(bodies.load(Ordering::SeqCst), answered);
    }
    assert!(answered <= 1);
}

#[tokio::test]
async fn a_request_that_waits_for_a_stream_as_the_connection_ends_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transport = transport(&format!("http://{}", listener.local_addr().unwrap()), 5_000, 5_000);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(NO_STREAMS).await.unwrap();
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
    });
    // The first may be on its way before the peer's settings are.
    send_within(&transport, Duration::from_millis(200)).await;
    let answer = send(&transport).await;
    assert_eq!(phase(&answer), ("not_sent", "connect"), "{answer:?}");
}

/// failures 58: a connection every job shares, and nobody at its other end.
#[tokio::test]
async fn a_dead_shared_connection_is_replaced_within_one_attempt() {
    let silent_first = |n| (SETTINGS.to_vec(), if n == 0 { Vec::new() } else { OK.to_vec() });
    let (base_url, bodies) = peer(silent_first).await;
    let transport = transport(&base_url, 5_000, 1_500);
    let answer = send(&transport).await;
    assert_eq!(phase(&answer), ("unanswered", "reset"), "{answer:?}");
    let answer = send(&transport).await;
    assert_eq!(phase(&answer), ("http", ""), "{answer:?}");
    assert_eq!(bodies.load(Ordering::SeqCst), 2);
}
