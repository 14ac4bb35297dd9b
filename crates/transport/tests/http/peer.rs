//! A remote side that talks TCP as a script says and keeps what it heard.

use paceline_core::answer::HttpAnswer;
use paceline_core::config::Provider;
use paceline_core::request::{Request, RequestForm};
use paceline_core::vocabulary::ProviderRules;
use paceline_core::{Answer, Outgoing, Transport};
use paceline_transport::{Credential, HttpTransport};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// `HTTP/1.1 200`, with a body.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// The heads and bodies of the requests that arrived whole, over all connections.
type Heard = Arc<Mutex<Vec<String>>>;

pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    heard: Heard,
}

/// One accepted connection.
pub(crate) struct Line {
    pub(crate) stream: TcpStream,
    heard: Heard,
    unread: Vec<u8>,
}

impl Peer {
    /// Runs `talk` on every connection.
    pub(crate) async fn talking<F, T>(talk: F) -> Self
    where
        F: Fn(Line) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Self { address: listener.local_addr().unwrap(), heard: Heard::default() };
        let heard = peer.heard.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(Line { stream, heard: heard.clone(), unread: Vec::new() }));
            }
        });
        peer
    }

    /// Gives every request the same answer, byte for byte, and keeps the connection.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::talking(move |mut line| {
            let answer = answer.clone();
            async move {
                while line.request().await.is_some() {
                    line.say(&answer).await;
                }
            }
        })
        .await
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// A provider here, with short but not hasty deadlines.
    pub(crate) fn provider(&self) -> Provider {
        provider(&format!("http://{}", self.address))
    }

    pub(crate) fn transport(&self) -> HttpTransport {
        transport(&self.provider())
    }
}

impl Line {
    /// The next request, whole; `None` once the other side is gone.
    pub(crate) async fn request(&mut self) -> Option<String> {
        let (head, length) = loop {
            if let Some(found) = head(&self.unread) {
                break found;
            }
            self.more().await?;
        };
        while self.unread.len() < head + length {
            self.more().await?;
        }
        let request: Vec<u8> = self.unread.drain(..head + length).collect();
        let request = String::from_utf8(request).unwrap();
        self.heard.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// Bytes to the other side; one that is gone is not an error here.
    pub(crate) async fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Says nothing until the other side is gone.
    pub(crate) async fn listen(&mut self) {
        while self.more().await.is_some() {}
    }

    async fn more(&mut self) -> Option<()> {
        let read = self.stream.read_buf(&mut self.unread).await.ok()?;
        (read > 0).then_some(())
    }
}

/// Where the head ends, and how long a body it announces.
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some((end, length.map_or(0, |length| length.trim().parse().unwrap())))
}

pub(crate) fn provider(base_url: &str) -> Provider {
    Provider {
        base_url: base_url.parse().unwrap(),
        request: RequestForm::default(),
        idempotency_header: Some("idempotency-key".into()),
        dedup_window_ms: None,
        rules: ProviderRules::default(),
        connect_timeout_ms: 2_000,
        first_byte_timeout_ms: 2_000,
        max_answer_bytes: 4_096,
    }
}

pub(crate) fn transport(provider: &Provider) -> HttpTransport {
    HttpTransport::new(provider, Credential::None).unwrap()
}

/// A job for `path` with a small JSON body.
pub(crate) fn job(path: &str) -> Outgoing {
    Outgoing {
        send_id: "6f1a0c5e-send-id".into(),
        request: Request {
            method: "POST".into(),
            path: path.into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: br#"{"to":"ada@example.org"}"#.to_vec(),
        },
        deadline: Duration::from_secs(4),
    }
}

pub(crate) async fn send(transport: &HttpTransport, job: Outgoing) -> Answer {
    let mut answers = transport.send(&[job]).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

#[track_caller]
pub(crate) fn http(answer: Answer) -> HttpAnswer {
    match answer {
        Answer::Http(answer) => answer,
        other => panic!("no HTTP answer: {other:?}"),
    }
}

/// `not_sent` or `unanswered`, with its phase.
#[track_caller]
pub(crate) fn broken(answer: &Answer) -> (&'static str, &'static str) {
    match answer {
        Answer::NotSent { phase, .. } => ("not_sent", phase),
        Answer::Unanswered { phase, .. } => ("unanswered", phase),
        Answer::Http(_) => panic!("an HTTP answer: {answer:?}"),
    }
}
