//! A master, two replicas and three Sentinels that watch them.

use crate::ports;
use crate::redis_server::{RedisServer, await_port, bound_to_us, eventually, spawn};
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The name the Sentinels know the master by.
const MASTER: &str = "jobs";

/// Everything but the first master, which the test owns and kills.
pub struct Sentinels {
    ports: Vec<u16>,
    children: Vec<Child>,
    replicas: Vec<RedisServer>,
    _folder: TempDir,
}

impl Sentinels {
    /// Starts replicas and Sentinels around a master, and waits until they all know each other.
    pub fn around(master: &RedisServer) -> Self {
        let of = ["--replicaof", &format!("127.0.0.1 {}", master.port())];
        let replica = || RedisServer::with(&[&["--appendonly", "no"], &of[..]].concat());
        let replicas = vec![replica(), replica()];
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let ports: Vec<u16> = (0..3).map(|_| ports::free()).collect();
        let children = ports.iter().map(|&port| start(&folder, port, master.port())).collect();
        let sentinels = Self { ports, children, replicas, _folder: folder };
        sentinels.await_acquaintance();
        sentinels
    }

    fn await_acquaintance(&self) {
        eventually(Duration::from_secs(30), || self.replicas.iter().all(follows));
        eventually(Duration::from_secs(30), || {
            self.ports.iter().all(|&port| {
                let master: Vec<String> = ask(port, &["MASTER", MASTER]).unwrap_or_default();
                let field = |name: &str| {
                    master.chunks(2).find(|pair| pair[0] == name).map_or("", |pair| pair[1].as_str())
                };
                field("num-slaves") == "2"
                    && field("num-other-sentinels") == "2"
                    && field("flags") == "master"
            })
        });
    }

    /// Their address for Paceline.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis+sentinel://{}/{MASTER}", hosts.join(","))
    }

    /// Waits until a replica is the master of them all.
    pub fn await_failover(&self) {
        eventually(Duration::from_secs(30), || {
            let named: Vec<String> =
                ask(self.ports[0], &["GET-MASTER-ADDR-BY-NAME", MASTER]).unwrap_or_default();
            named.get(1).is_some_and(|port| {
                self.replicas.iter().any(|replica| replica.port().to_string() == *port && is_master(replica))
            })
        });
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(folder: &TempDir, port: u16, master: u16) -> Child {
    let file = folder.path().join(format!("sentinel-{port}.conf"));
    let settings = format!(
        "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {MASTER} 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds {MASTER} 500\nsentinel failover-timeout {MASTER} 3000\n",
        folder.path().display()
    );
    std::fs::write(&file, settings).expect("the folder can be written to");
    let mut command = bound_to_us("redis-server");
    command.arg(&file).arg("--sentinel").stdout(Stdio::null()).stderr(Stdio::null());
    let child = spawn(command).expect("redis-server is installed (make setup)");
    await_port(port);
    child
}

fn ask(port: u16, words: &[&str]) -> redis::RedisResult<Vec<String>> {
    let mut connection = redis::Client::open(format!("redis://127.0.0.1:{port}"))?.get_connection()?;
    redis::cmd("SENTINEL").arg(words).query(&mut connection)
}

fn follows(replica: &RedisServer) -> bool {
    let info: redis::RedisResult<String> =
        redis::cmd("INFO").arg("replication").query(&mut replica.connection());
    info.is_ok_and(|info| info.contains("master_link_status:up"))
}

fn is_master(server: &RedisServer) -> bool {
    let role: redis::RedisResult<redis::Value> = redis::cmd("ROLE").query(&mut server.connection());
    matches!(role, Ok(redis::Value::Array(parts)) if parts.first() == Some(&redis::Value::BulkString(b"master".to_vec())))
}
