//! The sandbox as a running server.

use crate::front::{Front, Shared, stopped};
use crate::ledger::{Ledger, LedgerSummary};
use crate::provider::Provider;
use crate::scenario::Scenario;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use paceline_core::Fault;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How long a shutdown waits for answers that are on their way.
const GRACE: Duration = Duration::from_secs(5);
/// When no connection can be accepted (no file descriptors left, say), trying at once only burns the CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Mend the scenario.
    #[error("the scenario's {0}")]
    Scenario(#[from] Fault),
    /// Choose another address, or free this one.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A running sandbox. Dropped, it is gone at once, with every connection.
///
/// It speaks HTTP/1.1. Connections are kept alive for as long as the client likes: the sandbox never closes
/// an idle one, so a request that finds its connection closed met an unanswered share (or a shutdown) and
/// nothing else. A cut closes that one connection only.
#[derive(Debug)]
pub struct Sandbox {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
}

impl Sandbox {
    /// Checks the scenario, binds (port 0: any free one) and serves in the background.
    pub async fn start(listen: SocketAddr, scenario: Scenario) -> Result<Self, SandboxError> {
        scenario.check()?;
        let refused = |source| SandboxError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shared = Arc::new(Shared::new(Provider::new(scenario)));
        let (stop, stopping) = watch::channel(false);
        let server =
            tokio::spawn(serve(listener, Front::new(Arc::clone(&shared), stopping.clone()), stopping));
        Ok(Self { address, shared, stop, server })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The same as an origin, `http://127.0.0.1:4321`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The scenario in force; the control path may have changed it.
    pub fn scenario(&self) -> Scenario {
        self.shared.provider().0.scenario().clone()
    }

    /// Another scenario, from the next request on. The ledger stays, and nobody gets a fresh burst.
    pub fn set_scenario(&self, scenario: Scenario) -> Result<(), Fault> {
        let (mut provider, now) = self.shared.provider();
        provider.set_scenario(scenario, now)
    }

    /// As if just started with the scenario in force: empty ledger, full buckets, the schedule at zero.
    pub fn reset(&self) {
        let (mut provider, now) = self.shared.provider();
        provider.reset(now);
    }

    /// The totals of the ledger; cheap.
    pub fn summary(&self) -> LedgerSummary {
        self.shared.provider().0.summary()
    }

    /// A copy of the whole ledger; nothing is answered while it is made.
    pub fn ledger(&self) -> Ledger {
        self.shared.provider().0.ledger()
    }

    /// Takes no more requests, lets answers that are on their way leave, cuts what hangs.
    pub async fn shutdown(mut self) -> Ledger {
        self.stop.send_replace(true);
        // The server task neither panics nor is aborted before this.
        let _ = (&mut self.server).await;
        self.ledger()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Accepts until it is told to stop. Its connections are in a set of its own, so that they end with it.
async fn serve(listener: TcpListener, front: Front, stopping: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let mut stop = pin!(stopped(stopping.clone()));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, front.clone(), stopping.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = &mut stop => break,
        }
    }
    drop(listener);
    let all_done = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, all_done).await;
}

async fn connection(stream: TcpStream, front: Front, stopping: watch::Receiver<bool>) {
    // Small answers must not wait for more to send with them; without it they only come later.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<_>| front.clone().answer(request.map(Body::new)));
    // No timer, and so no time limit for a request's head: it would also end idle connections.
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
