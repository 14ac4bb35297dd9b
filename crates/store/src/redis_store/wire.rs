//! The connection: reconnects by itself, tells passing trouble from mistakes, repeats what may be repeated.

use super::address::Address;
use super::call::Call;
use crate::error::StoreError;
use crate::movement::Result;
use rand::RngExt;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use std::sync::RwLock;
use std::time::Duration;

/// How often a call is repeated before its caller backs off.
const REPEATS: u32 = 2;
/// Until connected.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone)]
enum Connection {
    Single(ConnectionManager),
    Cluster(ClusterConnection),
}

/// One Redis, or one Redis Cluster.
pub(super) struct Wire {
    address: Address,
    response_timeout: Duration,
    connection: RwLock<Option<Connection>>,
}

impl Wire {
    pub(super) fn open(url: &str, response_timeout: Duration) -> Result<Self> {
        let address = Address::read(url, response_timeout)?;
        Ok(Self { address, response_timeout, connection: RwLock::new(None) })
    }

    /// Runs a script: by its hash, by its text where the cache lost it, and again where the trouble may pass.
    pub(super) async fn run(&self, call: &Call) -> Result<Value> {
        let by_sha = call.by_sha();
        self.repeated(|mut connection| {
            let by_sha = &by_sha;
            async move {
                match connection.req_packed_command(by_sha).await.and_then(Value::extract_error) {
                    Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                        connection.req_packed_command(&call.by_source()).await.and_then(Value::extract_error)
                    }
                    answer => answer,
                }
            }
        })
        .await
        .map_err(|error| fault(&error, |problem| call.script.bug(problem)))
    }

    /// Runs a plain command that is safe to repeat.
    pub(super) async fn query(&self, command: &Cmd, place: &str) -> Result<Value> {
        self.repeated(|mut connection| async move {
            connection.req_packed_command(command).await.and_then(Value::extract_error)
        })
        .await
        .map_err(|error| {
            fault(&error, |problem| StoreError::Bug { place: place.into(), problem: problem.into() })
        })
    }

    /// A connection of its own for blocking waits, which have no response timeout.
    pub(super) async fn blocking(&self) -> Result<Blocking> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(super::wake::BLOCK + self.response_timeout));
        let connected = match &self.address {
            Address::Single(_) | Address::Sentinel(_) => match Box::pin(self.address.node()).await {
                Ok(node) => {
                    node.get_multiplexed_async_connection_with_config(&config).await.map(Blocking::Single)
                }
                Err(error) => Err(error),
            },
            Address::Cluster(client) => {
                let config = redis::cluster::ClusterConfig::new()
                    .set_response_timeout(super::wake::BLOCK + self.response_timeout);
                client.get_async_connection_with_config(config).await.map(Blocking::Cluster)
            }
        };
        connected.map_err(|error| StoreError::Unavailable(without_secrets(&error)))
    }

    /// A cluster answers a blocking wait over one hash tag only.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.address, Address::Cluster(_))
    }

    async fn repeated<F, Fut>(&self, attempt: F) -> std::result::Result<Value, RedisError>
    where
        F: Fn(Connection) -> Fut,
        Fut: Future<Output = std::result::Result<Value, RedisError>>,
    {
        let mut repeats = 0;
        loop {
            let answer = match self.connection().await {
                Ok(connection) => attempt(connection).await,
                Err(error) => Err(error),
            };
            let error = match answer {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let may_have_moved = error.is_io_error() && matches!(self.address, Address::Sentinel(_));
            if is_demoted(&error) || error.is_timeout() || may_have_moved {
                self.forget();
            }
            if repeats == REPEATS || !may_pass_soon(&error) {
                return Err(error);
            }
            repeats += 1;
            let pause_ms = rand::rng().random_range(5..40) * u64::from(repeats);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
    }

    async fn connection(&self) -> std::result::Result<Connection, RedisError> {
        if let Some(connection) = self.connection.read().expect("no holder panics").clone() {
            return Ok(connection);
        }
        let fresh = match &self.address {
            Address::Single(_) | Address::Sentinel(_) => {
                // Boxed: asking Sentinels is a deep future, and every call would carry its depth.
                let node = Box::pin(self.address.node()).await?;
                let config = ConnectionManagerConfig::new()
                    .set_connection_timeout(Some(CONNECT_TIMEOUT))
                    .set_response_timeout(Some(self.response_timeout))
                    .set_number_of_retries(1)
                    .set_min_delay(Duration::from_millis(20))
                    .set_pipeline_buffer_size(1_024);
                Connection::Single(ConnectionManager::new_lazy_with_config(node, config)?)
            }
            Address::Cluster(client) => Connection::Cluster(client.get_async_connection().await?),
        };
        *self.connection.write().expect("no holder panics") = Some(fresh.clone());
        Ok(fresh)
    }

    /// A manager stays for ever on a demoted master, and on a connection whose other end is gone without a word
    /// (failures 58): the next call resolves the address and connects anew.
    fn forget(&self) {
        *self.connection.write().expect("no holder panics") = None;
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> redis::RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(cmd),
            Self::Cluster(connection) => connection.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a redis::Pipeline,
        offset: usize,
        count: usize,
    ) -> redis::RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// A connection for blocking waits.
pub(super) enum Blocking {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Blocking {
    pub(super) async fn query(&mut self, command: &Cmd) -> Result<Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection) => connection.req_packed_command(command).await,
        }
        .and_then(Value::extract_error)
        .map_err(|error| StoreError::Unavailable(without_secrets(&error)))
    }
}

fn is_demoted(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown))
}

/// A broken connection or a slot on its way is over in a moment; everything else is the caller's to wait for.
fn may_pass_soon(error: &RedisError) -> bool {
    let moving = matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::TryAgain | ServerErrorKind::ReadOnly | ServerErrorKind::ClusterDown
        )
    );
    moving || (error.is_io_error() && !error.is_timeout())
}

fn fault(error: &RedisError, bug: impl Fn(&str) -> StoreError) -> StoreError {
    let text = without_secrets(error);
    match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => StoreError::Misconfigured(text),
        ErrorKind::Server(ServerErrorKind::NoPerm | ServerErrorKind::CrossSlot) => {
            StoreError::Misconfigured(text)
        }
        ErrorKind::Server(ServerErrorKind::ResponseError) => bug(&text),
        _ if error.code() == Some("OOM") => StoreError::OutOfMemory,
        _ if ["NOAUTH", "WRONGPASS"].iter().any(|&code| error.code() == Some(code)) => {
            StoreError::Misconfigured(text)
        }
        _ => StoreError::Unavailable(text),
    }
}

/// Errors of the client may quote the address, and the address may hold a password.
pub(super) fn without_secrets(error: &RedisError) -> String {
    let text = error.to_string();
    match text.split_once("://").and_then(|(_, rest)| rest.split_once('@')) {
        Some((secret, _)) => text.replace(secret, "***"),
        None => text,
    }
}
