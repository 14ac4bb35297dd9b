//! What comes back: status, headers and body as facts, bounded and clean.

use crate::peer::{Peer, broken, http, job, send, transport};
use paceline_core::config::Provider;

#[tokio::test]
async fn an_answer_is_reported_as_it_came() {
    let answer = "HTTP/1.1 299 Odd\r\nX-Id: a\r\nx-id: b\r\nContent-Length: 6\r\n\r\n{\"a\":1";
    let peer = Peer::answering(answer).await;
    let answer = http(send(&peer.transport(), job("/")).await);
    assert_eq!((answer.status, answer.body.as_slice()), (299, b"{\"a\":1".as_slice()));
    let pairs = [("x-id", "a"), ("x-id", "b"), ("content-length", "6")];
    assert_eq!(answer.headers, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(!answer.body_truncated);
}

/// failures 10, 22: the facts that tell a throttle from a refusal come through on every status.
#[tokio::test]
async fn a_named_wait_comes_through_on_every_status() {
    for status in [202, 400, 408, 425, 429, 503, 529, 599, 999] {
        let peer =
            Peer::answering(format!("HTTP/1.1 {status} X\r\nRetry-After: 120\r\ncontent-length: 0\r\n\r\n"))
                .await;
        let answer = http(send(&peer.transport(), job("/")).await);
        assert_eq!((answer.status, answer.header("retry-after")), (status, Some("120")));
    }
}

#[tokio::test]
async fn headers_are_bounded_clean_text() {
    let mut head = b"HTTP/1.1 429 X\r\ncontent-length: 0\r\nx-latin: ung\xFCltig\r\nx-long: ".to_vec();
    head.extend_from_slice(&[b'l'; 5_000]);
    for n in 0..150 {
        head.extend_from_slice(format!("\r\nx-{n}: {n}").as_bytes());
    }
    head.extend_from_slice(b"\r\n\r\n");
    let answer = http(send(&Peer::answering(head).await.transport(), job("/")).await);
    assert_eq!((answer.status, answer.headers.len()), (429, 100));
    assert_eq!(answer.header("x-latin"), Some("ung\u{FFFD}ltig"));
    assert!(answer.header("x-long").is_some_and(|value| value.len() <= 1_000 && value.ends_with('…')));
}

#[tokio::test]
async fn a_body_is_capped_to_the_byte() {
    for (length, kept, truncated) in [(0, 0, false), (511, 511, false), (512, 512, false), (513, 512, true)] {
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + length, b'x');
        let peer = Peer::answering(answer).await;
        let provider = Provider { max_answer_bytes: 512, ..peer.provider() };
        let answer = http(send(&transport(&provider), job("/")).await);
        assert_eq!((answer.body.len(), answer.body_truncated), (kept, truncated));
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_unanswered_unless_the_status_refuses() {
    for (status, refusal) in [(200, false), (202, false), (302, false), (400, true), (429, true), (503, true)]
    {
        let peer = Peer::talking(move |mut line| async move {
            line.request().await;
            line.say(format!("HTTP/1.1 {status} X\r\ncontent-length: 10\r\n\r\nhalf")).await;
        })
        .await;
        let answer = send(&peer.transport(), job("/")).await;
        if refusal {
            let answer = http(answer);
            assert_eq!((answer.status, answer.body.as_slice()), (status, b"half".as_slice()));
            assert!(answer.body_truncated);
        } else {
            assert_eq!(broken(&answer), ("unanswered", "body"), "{answer:?}");
        }
        assert_eq!(peer.heard().len(), 1);
    }
}

/// A packed answer is one we did not ask for; its bytes are a fact like any other.
#[tokio::test]
async fn a_body_is_not_unpacked() {
    let peer =
        Peer::answering("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nabcd").await;
    assert_eq!(http(send(&peer.transport(), job("/")).await).body, b"abcd");
    assert!(!peer.heard()[0].contains("accept-encoding"));
}
