//! One request on the wire per attempt, whatever the answer.

use crate::peer::{OK, Peer, broken, http, job, send};
use std::time::Duration;
use tokio::time::sleep;

/// failures 26, 97: neither a login page nor a metadata address is visited.
#[tokio::test]
async fn a_redirect_is_reported_and_never_followed() {
    let elsewhere = Peer::answering(OK).await;
    for status in [300, 301, 302, 303, 304, 307, 308] {
        let other = format!("http://{}/", elsewhere.address);
        for location in ["/login", &other, "http://a:99999/", "ftp://x/", "//x y"] {
            let answer = format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
            let peer = Peer::answering(answer).await;
            let answer = http(send(&peer.transport(), job("/send")).await);
            assert_eq!((answer.status, answer.header("location")), (status, Some(location)));
            assert_eq!(peer.heard().len(), 1, "{status} {location}");
        }
    }
    assert_eq!(elsewhere.heard().len(), 0);
}

/// failures 77, 10, 22
#[tokio::test]
async fn four_attempts_at_a_refusal_are_four_requests() {
    for answer in [
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 425 Too Early\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 307 X\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
    ] {
        let peer = Peer::answering(answer).await;
        let transport = peer.transport();
        for _ in 0..4 {
            http(send(&transport, job("/")).await);
        }
        assert_eq!(peer.heard().len(), 4, "{answer}");
    }
}

/// failures 77: on a fresh connection and on one that served before.
#[tokio::test]
async fn a_reset_after_the_request_is_unanswered_and_not_repeated() {
    for served_before in [0, 2] {
        let peer = Peer::talking(move |mut line| async move {
            for _ in 0..served_before {
                line.request().await;
                line.say(OK).await;
            }
            line.request().await;
            line.stream.set_zero_linger().unwrap();
        })
        .await;
        let transport = peer.transport();
        for _ in 0..served_before {
            http(send(&transport, job("/")).await);
        }
        let answer = send(&transport, job("/")).await;
        assert_eq!(broken(&answer), ("unanswered", "reset"), "{answer:?}");
        sleep(Duration::from_millis(50)).await;
        assert_eq!(peer.heard().len(), served_before + 1);
    }
}

#[tokio::test]
async fn an_end_without_an_answer_is_unanswered_and_not_repeated() {
    let peer = Peer::talking(|mut line| async move {
        line.request().await;
    })
    .await;
    assert_eq!(broken(&send(&peer.transport(), job("/")).await), ("unanswered", "reset"));
    let half = Peer::talking(|mut line| async move {
        line.request().await;
        line.say("HTTP/1.1 200 OK\r\ncontent-le").await;
    })
    .await;
    assert_eq!(broken(&send(&half.transport(), job("/")).await), ("unanswered", "reset"));
    sleep(Duration::from_millis(50)).await;
    assert_eq!((peer.heard().len(), half.heard().len()), (1, 1));
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_unanswered() {
    for garbage in
        ["220 mail.example ESMTP\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"]
    {
        let peer = Peer::answering(garbage).await;
        let answer = send(&peer.transport(), job("/")).await;
        assert_eq!(broken(&answer), ("unanswered", "unreadable"), "{answer:?}");
        assert_eq!(peer.heard().len(), 1);
    }
}
