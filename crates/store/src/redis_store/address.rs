//! Where Redis is: one node, a node that Sentinels name, or a cluster.

use super::wire::CONNECT_TIMEOUT;
use crate::error::StoreError;
use crate::movement::Result;
use redis::cluster::ClusterClient;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{Client, IntoConnectionInfo, RedisError};
use std::time::Duration;
use tokio::sync::Mutex;

/// An address of one of its forms.
pub(super) enum Address {
    /// `redis://[user:password@]host:port[/db]`, or `rediss://` over TLS.
    Single(Box<Client>),
    /// `redis+sentinel://[user:password@]host:port,host:port/master[/db]`: the hosts are Sentinels, user and password
    /// are those of Redis. Asked anew for every connection, since the answer changes with every failover.
    Sentinel(Box<Mutex<SentinelClient>>),
    /// `redis+cluster://[user:password@]host:port,host:port`
    Cluster(Box<ClusterClient>),
}

impl Address {
    pub(super) fn read(url: &str, response_timeout: Duration) -> Result<Self> {
        // The text of the error may quote the address, and that may hold a password.
        let wrong = |error: RedisError| StoreError::Misconfigured(super::wire::without_secrets(&error));
        if let Some(rest) = url.strip_prefix("redis+cluster://") {
            let (login, nodes) = split(rest);
            let nodes: Vec<String> = nodes.split(',').map(|node| format!("redis://{login}{node}")).collect();
            let builder = ClusterClient::builder(nodes)
                .connection_timeout(CONNECT_TIMEOUT)
                .response_timeout(response_timeout)
                .overall_response_timeout(Some(response_timeout * 3));
            return Ok(Self::Cluster(Box::new(builder.build().map_err(wrong)?)));
        }
        match url.strip_prefix("redis+sentinel://") {
            Some(rest) => sentinel(rest),
            None => Ok(Self::Single(Box::new(Client::open(url).map_err(wrong)?))),
        }
    }

    /// The node to talk to; of a cluster there is no one node.
    pub(super) async fn node(&self) -> std::result::Result<Client, RedisError> {
        match self {
            Self::Single(client) => Ok(client.as_ref().clone()),
            Self::Sentinel(client) => client.lock().await.async_get_client().await,
            Self::Cluster(_) => Err((redis::ErrorKind::Client, "a cluster has no one node").into()),
        }
    }
}

fn split(rest: &str) -> (String, &str) {
    match rest.rsplit_once('@') {
        Some((login, nodes)) => (format!("{login}@"), nodes),
        None => (String::new(), rest),
    }
}

fn sentinel(rest: &str) -> Result<Address> {
    let wrong = |text: &str| StoreError::Misconfigured(text.to_owned());
    let (login, rest) = split(rest);
    let mut parts = rest.splitn(3, '/');
    let hosts = parts.next().unwrap_or_default();
    let master = parts.next().filter(|name| !name.is_empty());
    let master =
        master.ok_or_else(|| wrong("redis+sentinel:// needs the master's name: host:port,host:port/name"))?;
    let db = parts.next().unwrap_or("0");
    // What a plain URL of the master would say, but for the host.
    let of_node = format!("redis://{login}localhost/{db}").into_connection_info().map_err(|_| {
        wrong("the user, password or database of the redis+sentinel:// address cannot be read")
    })?;
    let node =
        SentinelNodeConnectionInfo::default().set_redis_connection_info(of_node.redis_settings().clone());
    let hosts: Vec<String> = hosts.split(',').map(|host| format!("redis://{host}")).collect();
    SentinelClient::build(hosts, master, Some(node), SentinelServerType::Master)
        .map(|client| Address::Sentinel(Box::new(Mutex::new(client))))
        .map_err(|error| StoreError::Misconfigured(super::wire::without_secrets(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Address> {
        Address::read(url, Duration::from_secs(1))
    }

    #[test]
    fn every_form_is_read() {
        assert!(matches!(read("redis://127.0.0.1:1/2"), Ok(Address::Single(_))));
        assert!(matches!(read("redis+cluster://u:p@a:1,b:2"), Ok(Address::Cluster(_))));
        assert!(matches!(read("redis+sentinel://u:p@a:1,b:2/mymaster/3"), Ok(Address::Sentinel(_))));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for url in [
            "redis+sentinel://u:secret@a:1,b:2",
            "redis+sentinel://u:secret@a:1/m/x",
            "redis://u:secret@[::1:1",
        ] {
            let error = read(url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.is_empty() && !error.contains("secret"), "{url}: {error:?}");
        }
    }
}
