//! failures 29: every attempt ends, in its time, with its slot free and its connection gone.

use crate::peer::{Line, Peer, broken, http, job, provider, send, transport};
use paceline_core::config::Provider;
use paceline_core::{Answer, Outgoing};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const SHORT: Duration = Duration::from_millis(200);

/// Long enough for a busy machine, far below the deadlines that are not under test.
const SOON: Duration = Duration::from_secs(10);

/// Deadlines of a minute, so that only the one a test shortens can end an attempt.
fn patient(base_url: &str) -> Provider {
    Provider { connect_timeout_ms: 60_000, first_byte_timeout_ms: 60_000, ..provider(base_url) }
}

fn patient_job() -> Outgoing {
    Outgoing { deadline: Duration::from_secs(60), ..job("/") }
}

async fn ended(provider: &Provider, job: Outgoing) -> Answer {
    timeout(SOON, send(&transport(provider), job)).await.expect("the attempt ends by itself")
}

/// A peer that does `talk` after it has read a request, and a signal for each connection that we let go.
async fn forsaken<F, T>(talk: F) -> (Peer, mpsc::UnboundedReceiver<()>)
where
    F: Fn(Line) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let (gone, seen) = mpsc::unbounded_channel();
    let peer = Peer::talking(move |mut line| {
        let (talk, gone) = (talk.clone(), gone.clone());
        async move {
            line.request().await;
            talk(line).await;
            let _ = gone.send(());
        }
    })
    .await;
    (peer, seen)
}

async fn let_go(seen: &mut mpsc::UnboundedReceiver<()>) {
    timeout(SOON, seen.recv()).await.expect("the connection is let go").unwrap();
}

async fn drip(mut line: Line, head: &'static str) {
    line.say(head).await;
    while line.say("x").await {
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_peer_that_says_nothing_costs_the_first_byte_deadline() {
    let (peer, mut seen) = forsaken(|mut line| async move { line.listen().await }).await;
    let quick = Provider { first_byte_timeout_ms: 200, ..patient(&format!("http://{}", peer.address)) };
    let answer = ended(&quick, patient_job()).await;
    assert_eq!(broken(&answer), ("unanswered", "first_byte"));
    let_go(&mut seen).await;
    assert_eq!(peer.heard().len(), 1);
}

#[tokio::test]
async fn a_peer_that_says_nothing_costs_the_total_deadline_if_that_is_shorter() {
    let (peer, mut seen) = forsaken(|mut line| async move { line.listen().await }).await;
    let provider = patient(&format!("http://{}", peer.address));
    let answer = ended(&provider, Outgoing { deadline: SHORT, ..job("/") }).await;
    assert_eq!(broken(&answer), ("unanswered", "deadline"));
    let_go(&mut seen).await;
}

#[tokio::test]
async fn a_head_that_drips_is_no_first_byte() {
    let (peer, mut seen) = forsaken(|line| drip(line, "HTTP/1.1 200 OK\r\nx-a: ")).await;
    let quick = Provider { first_byte_timeout_ms: 200, ..patient(&format!("http://{}", peer.address)) };
    assert_eq!(broken(&ended(&quick, patient_job()).await), ("unanswered", "first_byte"));
    let_go(&mut seen).await;
}

#[tokio::test]
async fn a_body_that_drips_is_unanswered_at_the_deadline() {
    let (peer, mut seen) =
        forsaken(|line| drip(line, "HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n")).await;
    let provider = patient(&format!("http://{}", peer.address));
    match ended(&provider, Outgoing { deadline: SHORT, ..job("/") }).await {
        Answer::Unanswered { phase: "body", error } => {
            assert!(error.starts_with("status 200, then"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let_go(&mut seen).await;
}

#[tokio::test]
async fn a_refusal_whose_body_drips_is_still_that_refusal() {
    let head = "HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 4000\r\n\r\n";
    let (peer, mut seen) = forsaken(move |line| drip(line, head)).await;
    let provider = patient(&format!("http://{}", peer.address));
    let answer = http(ended(&provider, Outgoing { deadline: SHORT, ..job("/") }).await);
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("7")));
    assert!(answer.body_truncated && answer.body.starts_with(b"x"));
    let_go(&mut seen).await;
}

#[tokio::test]
async fn a_body_without_end_is_cut_at_the_cap() {
    let (peer, mut seen) = forsaken(|mut line| async move {
        line.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while line.say("5\r\nabcde\r\n").await {}
    })
    .await;
    let provider = Provider { max_answer_bytes: 1_001, ..patient(&format!("http://{}", peer.address)) };
    let answer = http(ended(&provider, patient_job()).await);
    assert_eq!((answer.status, answer.body.len(), answer.body_truncated), (200, 1_001, true));
    let_go(&mut seen).await;
}

/// Nothing left: the job may go again, even where the provider does not deduplicate.
#[tokio::test]
async fn a_tls_handshake_that_stalls_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("https://{}", listener.local_addr().unwrap());
    let by_connect = Provider { connect_timeout_ms: 200, ..patient(&base_url) };
    assert_eq!(broken(&ended(&by_connect, patient_job()).await), ("not_sent", "connect"));
    let by_total = Outgoing { deadline: SHORT, ..job("/") };
    assert_eq!(broken(&ended(&patient(&base_url), by_total).await), ("not_sent", "connect"));
}

/// The gate of an empty body cannot be held shut; the connection's own error says that nothing left.
#[tokio::test]
async fn an_empty_body_that_finds_no_connection_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("https://{}", listener.local_addr().unwrap());
    let mut job = patient_job();
    job.request.body.clear();
    let by_connect = Provider { connect_timeout_ms: 200, ..patient(&base_url) };
    assert_eq!(broken(&ended(&by_connect, job).await), ("not_sent", "connect"));
}

#[tokio::test]
async fn a_silent_peer_does_not_hold_up_the_others() {
    let (silent, _seen) = forsaken(|mut line| async move { line.listen().await }).await;
    let peer = Peer::answering(crate::peer::OK).await;
    let stuck = transport(&patient(&format!("http://{}", silent.address)));
    let stuck = tokio::spawn(async move { send(&stuck, patient_job()).await });
    let (transport, start) = (peer.transport(), Instant::now());
    for _ in 0..50 {
        http(send(&transport, job("/")).await);
    }
    assert!(start.elapsed() < SOON && !stuck.is_finished());
    stuck.abort();
}
