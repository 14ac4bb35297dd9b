//! A remote side over plain TCP that does exactly what a test says, byte for byte, and keeps what it heard: for
//! everything the sandbox, a decent server, never does.

use bytes::Bytes;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A request that arrived whole.
#[derive(Debug, Clone)]
pub struct Heard {
    /// When its last byte was read.
    pub at: Instant,
    /// Over which connection, in the order they were accepted.
    pub connection: usize,
    /// The request line and the headers, as they came.
    pub head: String,
    /// The path, with its query.
    pub path: String,
    /// The idempotency key; empty where there was none.
    pub send_id: String,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// How many requests of this send id there are now, this one included.
    pub nth: usize,
}

/// What the peer does with a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Says these bytes and keeps the connection.
    Say(Bytes),
    /// Says these bytes and closes the connection.
    SayAndClose(Bytes),
    /// Says these bytes, then one more after every pause, without end.
    Drip(Bytes, Duration),
    /// Says these bytes, then more as fast as they are taken, without end.
    Flood(Bytes),
    /// Says nothing until the other side is gone.
    Hang,
    /// Closes the connection without a byte.
    Close,
    /// Breaks the connection: the other side reads "reset by peer".
    Reset,
    /// The same, but so much later.
    After(Duration, Box<Act>),
    /// The same, but not before the gate is open.
    When(Gate, Box<Act>),
}

impl Act {
    /// An answer of this status with a small body.
    pub fn status(status: u16) -> Self {
        Self::Say(answer(status, &[], "{}"))
    }

    /// An answer of this status that asks for a wait.
    pub fn wait(status: u16, retry_after: &str) -> Self {
        Self::Say(answer(status, &[("retry-after", retry_after)], "{}"))
    }

    /// An acceptance, as ONE_CLASS reads it.
    pub fn accept() -> Self {
        Self::Say(answer(202, &[], r#"{"id":"taken"}"#))
    }
}

/// The bytes of an answer. There is no `Date` unless it is among the headers.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Bytes {
    let mut answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        answer.push_str(&format!("{name}:{value}\r\n"));
    }
    Bytes::from(format!("{answer}\r\n{body}"))
}

/// Shut at first, and open for ever once it is opened.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Default for Gate {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Gate {
    /// Lets everybody pass from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// It was opened.
    pub fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    async fn opened(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// The remote side. Dropped, it is gone at once, with every connection.
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    heard: Mutex<Vec<Heard>>,
    times: Mutex<HashMap<String, usize>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl Peer {
    /// Does with every request what `script` says.
    pub async fn start(script: impl Fn(&Heard) -> Act + Send + Sync + 'static) -> Self {
        Self::impatient(None, script).await
    }

    /// The same, and closes every connection that was idle for so long.
    pub async fn impatient(
        idle: Option<Duration>,
        script: impl Fn(&Heard) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let server = tokio::spawn(serve(listener, idle, shared.clone(), Arc::new(script)));
        Self { address, shared, server }
    }

    /// Its origin.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that arrived whole, in order.
    pub fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().expect("no holder panics").clone()
    }

    /// The most requests that waited for an answer at one time.
    pub fn most_at_once(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

type Script = Arc<dyn Fn(&Heard) -> Act + Send + Sync>;

async fn serve(listener: TcpListener, idle: Option<Duration>, shared: Arc<Shared>, script: Script) {
    let mut connections = JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else { return };
        let _ = stream.set_nodelay(true);
        let line = Line { stream, number, unread: Vec::new(), shared: shared.clone() };
        connections.spawn(line.talk(idle, script.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// One connection.
struct Line {
    stream: TcpStream,
    number: usize,
    unread: Vec<u8>,
    shared: Arc<Shared>,
}

impl Line {
    async fn talk(mut self, idle: Option<Duration>, script: Script) {
        loop {
            let next = self.request();
            let request = match idle {
                Some(idle) => tokio::time::timeout(idle, next).await.unwrap_or(None),
                None => next.await,
            };
            let Some(heard) = request else { return };
            if !self.carry_out(script(&heard)).await {
                return;
            }
        }
    }

    /// The next request; `None` once the other side is gone.
    async fn request(&mut self) -> Option<Heard> {
        let (end, length) = loop {
            if let Some(found) = head(&self.unread) {
                break found;
            }
            self.more().await?;
        };
        while self.unread.len() < end + length {
            self.more().await?;
        }
        let body = self.unread[end..end + length].to_vec();
        let head = String::from_utf8_lossy(&self.unread[..end]).into_owned();
        self.unread.drain(..end + length);
        Some(self.shared.write_down(self.number, head, body))
    }

    /// Whether the connection is still of use.
    async fn carry_out(&mut self, act: Act) -> bool {
        let waiting = Waiting::begin(&self.shared);
        let act = due(act).await;
        // A request that is answered waits no longer, even while its answer is on the way.
        let _waiting = matches!(act, Act::Hang).then_some(waiting);
        match act {
            Act::Say(bytes) => self.say(&bytes).await,
            Act::SayAndClose(bytes) => {
                self.say(&bytes).await;
                false
            }
            Act::Drip(bytes, pause) => self.go_on(bytes, Bytes::from_static(b"x"), pause).await,
            Act::Flood(bytes) => self.go_on(bytes, Bytes::from(vec![b'x'; 65_536]), Duration::ZERO).await,
            Act::Hang => {
                while self.more().await.is_some() {}
                false
            }
            Act::Reset => {
                let _ = self.stream.set_zero_linger();
                false
            }
            Act::Close | Act::After(..) | Act::When(..) => false,
        }
    }

    async fn go_on(&mut self, head: Bytes, more: Bytes, pause: Duration) -> bool {
        let mut open = self.say(&head).await;
        while open {
            tokio::time::sleep(pause).await;
            open = self.say(&more).await;
        }
        false
    }

    async fn say(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    async fn more(&mut self) -> Option<()> {
        let read = self.stream.read_buf(&mut self.unread).await.ok()?;
        (read > 0).then_some(())
    }
}

/// What is left of an act when its moment has come.
async fn due(mut act: Act) -> Act {
    loop {
        act = match act {
            Act::After(pause, then) => {
                tokio::time::sleep(pause).await;
                *then
            }
            Act::When(gate, then) => {
                gate.opened().await;
                *then
            }
            now => return now,
        }
    }
}

/// Where the head ends, and how long a body it announces.
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let length =
        header(&head, "content-length").map_or(0, |text| text.parse().expect("a length is a number"));
    Some((end, length))
}

/// The value of a header.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

impl Shared {
    fn write_down(&self, connection: usize, head: String, body: Vec<u8>) -> Heard {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let send_id = header(&head, "idempotency-key").unwrap_or_default().to_owned();
        let mut times = self.times.lock().expect("no holder panics");
        let nth = times.entry(send_id.clone()).or_default();
        *nth += 1;
        let heard = Heard { at: Instant::now(), connection, head, path, send_id, body, nth: *nth };
        self.heard.lock().expect("no holder panics").push(heard.clone());
        heard
    }
}

/// A request that waits for its answer.
struct Waiting(Arc<Shared>);

impl Waiting {
    fn begin(shared: &Arc<Shared>) -> Self {
        let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_open.fetch_max(open, Ordering::SeqCst);
        Self(shared.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
