//! No secret in anything a transport shows or returns.

use crate::peer::{Peer, job, provider, send};
use paceline_core::Answer;
use paceline_core::config::Provider;
use paceline_transport::{Credential, HttpTransport};

const SECRET: &str = "sk_live/51+Hidden";

fn credentials() -> [Credential; 4] {
    [
        Credential::Bearer(SECRET.into()),
        Credential::Basic { user: "ada".into(), secret: SECRET.into() },
        Credential::Header { name: "x-api-key".into(), secret: SECRET.into() },
        Credential::Query { name: "key".into(), secret: SECRET.into() },
    ]
}

/// The secret as it is, in a query, in JSON, and in base64 behind `ada:`.
#[track_caller]
fn assert_hidden(shown: &str) {
    for form in [SECRET, "sk_live%2F51%2BHidden", "sk_live\\/51+Hidden", "YWRhOnNrX2xpdmUvNTErSGlkZGVu"] {
        assert!(!shown.contains(form), "{form} in {shown}");
    }
}

fn shown(answer: &Answer) -> String {
    let body = match answer {
        Answer::Http(answer) => String::from_utf8_lossy(&answer.body).into_owned(),
        _ => String::new(),
    };
    format!("{answer:?} {body}")
}

#[test]
fn debug_of_a_transport_hides_the_secret() {
    for credential in credentials() {
        assert_hidden(&format!("{credential:?}"));
        let transport = HttpTransport::new(&provider("http://127.0.0.1:1"), credential).unwrap();
        assert_hidden(&format!("{transport:?}"));
    }
}

#[tokio::test]
async fn an_echoed_secret_is_masked_in_headers_and_body() {
    for credential in credentials() {
        let peer = Peer::talking(|mut line| async move {
            let request = line.request().await.unwrap();
            let (first, rest) = request.split_once("\r\n").unwrap();
            let auth =
                rest.lines().find(|line| line.starts_with("auth") || line.starts_with("x-api")).unwrap_or("");
            let body = format!("{first} {rest} {SECRET} sk_live\\/51+Hidden");
            let head = format!("HTTP/1.1 401 X\r\nx-target: {first}\r\nx-echo: {auth}\r\nx-raw: {SECRET}");
            line.say(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
        })
        .await;
        let transport = HttpTransport::new(&peer.provider(), credential).unwrap();
        let shown = shown(&send(&transport, job("/send")).await);
        assert_hidden(&shown);
        assert!(shown.contains("***") && shown.contains("idempotency-key"), "{shown}");
    }
}

#[tokio::test]
async fn a_cut_through_an_echoed_secret_leaves_no_half() {
    for cap in 512..530 {
        let peer = Peer::talking(|mut line| async move {
            line.request().await;
            let body = format!("{}{SECRET} and more of it", "x".repeat(508));
            line.say(format!("HTTP/1.1 401 X\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
            line.listen().await;
        })
        .await;
        let provider = Provider { max_answer_bytes: cap, ..peer.provider() };
        let transport = HttpTransport::new(&provider, Credential::Bearer(SECRET.into())).unwrap();
        let shown = shown(&send(&transport, job("/")).await);
        assert!(!shown.contains("sk_l"), "{cap}: {shown}");
    }
}

#[tokio::test]
async fn an_error_hides_the_query_and_the_secret() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let peer = Peer::answering(format!("{SECRET} is no HTTP\r\n\r\n")).await;
    let half = Peer::talking(|mut line| async move {
        line.request().await;
        line.say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
    })
    .await;
    for address in [address, peer.address, half.address] {
        let base_url = format!("http://{address}");
        for credential in credentials() {
            let transport = HttpTransport::new(&provider(&base_url), credential).unwrap();
            match send(&transport, job("/send?token=alsohidden")).await {
                Answer::NotSent { error, .. } | Answer::Unanswered { error, .. } => {
                    assert_hidden(&error);
                    assert!(!error.contains("alsohidden") && !error.contains("/send"), "{error}");
                    assert!(!error.is_empty() && error.len() <= 200, "{error}");
                }
                Answer::Http(answer) => panic!("{answer:?}"),
            }
        }
    }
}
