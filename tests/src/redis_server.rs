//! A real `redis-server` in a folder of its own, killed with the test.

use crate::ports;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// One Redis.
pub struct RedisServer {
    port: u16,
    folder: TempDir,
    options: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    /// With AOF (everysec) and the settings that Paceline's own private Redis has.
    pub fn start() -> Self {
        Self::with(&["--appendonly", "yes"])
    }

    /// Without persistence.
    pub fn without_aof() -> Self {
        Self::with(&["--appendonly", "no"])
    }

    /// With these options on top.
    pub fn with(options: &[&str]) -> Self {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut server = Self { port: ports::free(), folder, options, child: None };
        server.run();
        server
    }

    /// Starts it again, after [`Self::kill`] or [`Self::stop`], with the same data and port.
    pub fn run(&mut self) {
        let child = Command::new("redis-server")
            .args([
                "--port",
                &self.port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--daemonize",
                "no",
            ])
            .args(["--zset-max-listpack-entries", "0", "--maxmemory-policy", "noeviction"])
            .arg("--dir")
            .arg(self.folder.path())
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed (make setup)");
        self.child = Some(child);
        await_port(self.port);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.take().map(|mut child| child.wait());
    }

    /// SIGTERM, and waits until it has ended.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        self.child.take().map(|mut child| child.wait());
    }

    /// Any signal.
    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("our own child can be signalled");
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address for Paceline.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A plain connection, for looking at what is really there.
    pub fn connection(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("a constant form of URL");
        client.get_connection().expect("it runs")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Three masters without replicas.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts it and waits until every slot is served.
    pub fn start() -> Self {
        let nodes: Vec<RedisServer> = (0..3)
            .map(|_| {
                RedisServer::with(&[
                    "--cluster-enabled",
                    "yes",
                    "--appendonly",
                    "no",
                    "--cluster-node-timeout",
                    "2000",
                ])
            })
            .collect();
        let addresses: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(&addresses)
            .args(["--cluster-replicas", "0", "--cluster-yes"])
            .output()
            .expect("redis-cli is installed (make setup)");
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stdout));
        let cluster = Self { nodes };
        cluster.await_ok();
        cluster
    }

    fn await_ok(&self) {
        eventually(Duration::from_secs(20), || {
            self.nodes.iter().all(|node| {
                let info: String =
                    redis::cmd("CLUSTER").arg("INFO").query(&mut node.connection()).unwrap_or_default();
                info.contains("cluster_state:ok")
            })
        });
    }

    /// Its address for Paceline.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }
}

/// Waits until something listens.
pub fn await_port(port: u16) {
    eventually(Duration::from_secs(10), || TcpStream::connect(("127.0.0.1", port)).is_ok());
}

/// Looks again and again until it holds; fails loudly when it never does.
pub fn eventually(patience: Duration, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < patience, "did not come true within {patience:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
