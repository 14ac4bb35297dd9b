//! One `redis-server`, killed with the test; without persistence, so a restart is the loss of everything.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) struct RedisServer {
    port: u16,
    folder: TempDir,
    child: Option<Child>,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        let mut server = Self { port: free_port(), folder: tempfile::tempdir().unwrap(), child: None };
        server.run();
        server
    }

    /// Starts it, or starts it again on the same port.
    pub(crate) fn run(&mut self) {
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no", "--port", &self.port.to_string(), "--dir"])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server and setpriv are installed");
        self.child = Some(child);
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(10), "redis-server did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// `STOP` makes it hang, `CONT` lets it go on.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().map(|child| child.id().to_string()).unwrap();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A plain command.
    pub(crate) fn query<T: redis::FromRedisValue>(&self, command: &[&[u8]]) -> T {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let mut cmd = redis::Cmd::new();
        for part in command {
            cmd.arg(*part);
        }
        cmd.query(&mut connection).unwrap()
    }

    /// The names of all keys, sorted.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.query(&[b"KEYS", b"*"]);
        keys.sort();
        keys
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port below the ephemeral ones, so that nobody's outgoing connection takes it while Redis is down.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 20_000 + (std::process::id() % 100) as u16 * 100;
    loop {
        let port = base + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
