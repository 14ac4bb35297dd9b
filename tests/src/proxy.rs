//! A road between a worker and its Redis that can be cut, or go silent, at a chosen moment: how replies get lost.
//!
//! Bytes are forwarded as they come. A [`Fate`] waits for a request that holds a text (a script's SHA-1, say) and
//! then befalls the connection that carries it; TCP never loses one reply and delivers the next, nor does this.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The request arrives and is carried out; then the connection breaks, and the reply is lost.
    Cut,
    /// The connection breaks before the request arrives.
    Refuse,
    /// The request arrives and is carried out; nothing comes back, and nobody says that the connection is dead.
    Silence,
    /// Neither this request nor anything after it arrives, and nobody says so.
    Swallow,
    /// The request arrives and is carried out; then every road is frozen, as by [`Proxy::freeze`].
    Freeze,
}

/// Longer than a request should take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a request.
struct Trap {
    marker: Vec<u8>,
    fate: Fate,
    left: usize,
}

/// What all connections share.
struct Road {
    upstream: Mutex<SocketAddr>,
    traps: Mutex<Vec<Trap>>,
    sprung: watch::Sender<usize>,
    frozen: watch::Sender<bool>,
}

/// A running proxy; dropped, it is gone with every connection.
pub struct Proxy {
    address: SocketAddr,
    road: Arc<Road>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// To a Redis on this machine; it need not run yet.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port is free");
        let address = listener.local_addr().expect("it is bound");
        let road = Arc::new(Road {
            upstream: Mutex::new(local(port)),
            traps: Mutex::default(),
            sprung: watch::Sender::new(0),
            frozen: watch::Sender::new(false),
        });
        let task = tokio::spawn(accept(listener, road.clone()));
        Self { address, road, task }
    }

    /// Its address as a Redis.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// New connections lead to another Redis from now on, as a name does after a failover.
    pub fn redirect(&self, port: u16) {
        *self.road.upstream.lock().expect("no holder panics") = local(port);
    }

    /// The next `times` requests that hold `marker` meet this fate.
    pub fn set_trap(&self, marker: &str, fate: Fate, times: usize) {
        let trap = Trap { marker: marker.into(), fate, left: times };
        self.road.traps.lock().expect("no holder panics").push(trap);
    }

    /// No trap waits any more.
    pub fn clear_traps(&self) {
        self.road.traps.lock().expect("no holder panics").clear();
    }

    /// Waits until so many requests met their fate.
    pub async fn await_sprung(&self, n: usize) {
        let mut sprung = self.road.sprung.subscribe();
        let enough = tokio::time::timeout(PATIENCE, sprung.wait_for(|sprung| *sprung >= n)).await;
        assert!(enough.is_ok(), "no such request came within {PATIENCE:?}");
    }

    /// Holds every byte back, in both directions, and new connections too. Nothing is lost.
    pub fn freeze(&self) {
        self.road.frozen.send_replace(true);
    }

    /// Lets everything that was held back go on.
    pub fn thaw(&self) {
        self.road.frozen.send_replace(false);
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, road: Arc<Road>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (client, _) = accepted.expect("this process has sockets left");
                connections.spawn(road.clone().carry(client));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Road {
    /// One connection, to its end.
    async fn carry(self: Arc<Self>, mut client: TcpStream) {
        self.open().await;
        // A client whose Redis is not there finds its connection closed.
        let upstream = *self.upstream.lock().expect("no holder panics");
        let Ok(mut server) = TcpStream::connect(upstream).await else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        let mut requests = Requests::default();
        loop {
            tokio::select! {
                read = client.read(&mut up) => {
                    let Some(bytes) = some(read, &up) else { return };
                    self.open().await;
                    let fate = requests.fate(bytes, &self.traps);
                    let arrives = !matches!(fate, Some(Fate::Refuse | Fate::Swallow));
                    if arrives && server.write_all(bytes).await.is_err() {
                        return;
                    }
                    match fate {
                        None => {}
                        Some(Fate::Freeze) => {
                            self.frozen.send_replace(true);
                            self.count();
                        }
                        Some(fate) => {
                            self.count();
                            return befall(fate, client, server).await;
                        }
                    }
                }
                read = server.read(&mut down) => {
                    let Some(bytes) = some(read, &down) else { return };
                    self.open().await;
                    if client.write_all(bytes).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn count(&self) {
        self.sprung.send_modify(|sprung| *sprung += 1);
    }

    /// Waits while everything is frozen.
    async fn open(&self) {
        let mut frozen = self.frozen.subscribe();
        let _ = frozen.wait_for(|frozen| !frozen).await;
    }
}

fn some(read: std::io::Result<usize>, buffer: &[u8]) -> Option<&[u8]> {
    read.ok().filter(|&n| n > 0).map(|n| &buffer[..n])
}

/// The end of a connection.
async fn befall(fate: Fate, client: TcpStream, mut server: TcpStream) {
    match fate {
        Fate::Refuse => {}
        Fate::Cut => {
            drop(client);
            // Its own end goes first: whatever was asked is carried out before Redis sees that nobody listens.
            let _ = server.shutdown().await;
            drain(&mut server).await;
        }
        Fate::Silence | Fate::Swallow | Fate::Freeze => {
            let (mut from_client, to_client) = client.into_split();
            tokio::join!(drain(&mut from_client), drain(&mut server));
            drop(to_client);
        }
    }
}

async fn drain(from: &mut (impl AsyncRead + Unpin)) {
    let mut nowhere = [0; 4_096];
    while from.read(&mut nowhere).await.is_ok_and(|n| n > 0) {}
}

/// The requests of one connection, searched across the seams of its reads.
#[derive(Default)]
struct Requests {
    tail: Vec<u8>,
}

impl Requests {
    fn fate(&mut self, bytes: &[u8], traps: &Mutex<Vec<Trap>>) -> Option<Fate> {
        self.tail.extend_from_slice(bytes);
        let mut traps = traps.lock().expect("no holder panics");
        let longest = traps.iter().map(|trap| trap.marker.len()).max().unwrap_or(0);
        let met = |trap: &&mut Trap| trap.left > 0 && holds(&self.tail, &trap.marker);
        let fate = traps.iter_mut().find(met).map(|trap| {
            trap.left -= 1;
            trap.fate
        });
        let keep = longest.saturating_sub(1).min(self.tail.len());
        self.tail.drain(..self.tail.len() - keep);
        fate
    }
}

fn holds(bytes: &[u8], marker: &[u8]) -> bool {
    bytes.windows(marker.len()).any(|window| window == marker)
}
