//! A real `redis-server` in a folder of its own, killed with the test, or with the test binary where it is shared.

use crate::ports;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
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

    /// One without persistence for the whole test binary: tests that share it use names of their own.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<RedisServer> = LazyLock::new(|| {
            let server = RedisServer::without_aof();
            server.remove_folder_at_exit();
            server
        });
        &SHARED
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
        let mut command = bound_to_us("redis-server");
        command
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
            .stderr(Stdio::null());
        self.child = Some(spawn(command).expect("redis-server is installed (make setup)"));
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

    fn cluster(&self, command: &[&str]) -> String {
        let answer = redis::cmd("CLUSTER").arg(command).query(&mut self.connection());
        answer.unwrap_or_else(|error| panic!("CLUSTER {command:?}: {error}"))
    }

    /// Statics are never dropped: a shell removes the folder when the pipe to it breaks, which is when we end.
    fn remove_folder_at_exit(&self) {
        let shell = Command::new("sh")
            .args(["-c", "read _; rm -rf \"$1\"", "sh"])
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("every system has a shell");
        std::mem::forget(shell);
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
    /// One for the whole test binary: tests that share it use groups of their own.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<RedisCluster> = LazyLock::new(|| {
            let cluster = RedisCluster::start();
            cluster.nodes.iter().for_each(RedisServer::remove_folder_at_exit);
            cluster
        });
        &SHARED
    }

    /// Starts it and waits until every slot is served.
    pub fn start() -> Self {
        let buses = [ports::free(), ports::free(), ports::free()];
        let node = |bus: &u16| {
            let bus = bus.to_string();
            let options = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--appendonly", "no"];
            RedisServer::with(&[&options[..], &["--cluster-node-timeout", "2000"]].concat())
        };
        let nodes: Vec<RedisServer> = buses.iter().map(node).collect();
        for (index, (node, slots)) in
            nodes.iter().zip([(0, 5_460), (5_461, 10_922), (10_923, 16_383)]).enumerate()
        {
            node.cluster(&["SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            node.cluster(&["ADDSLOTSRANGE", &slots.0.to_string(), &slots.1.to_string()]);
        }
        for (node, bus) in nodes[1..].iter().zip(&buses[1..]) {
            nodes[0].cluster(&["MEET", "127.0.0.1", &node.port.to_string(), &bus.to_string()]);
        }
        let cluster = Self { nodes };
        cluster.await_ok();
        cluster
    }

    fn await_ok(&self) {
        eventually(Duration::from_secs(20), || {
            self.nodes.iter().all(|node| {
                let info = node.cluster(&["INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        });
    }

    /// Its address for Paceline.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }
}

/// A command whose process is killed when ours ends, however that ends.
pub(crate) fn bound_to_us(program: &str) -> Command {
    if !cfg!(target_os = "linux") {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]);
    command
}

/// Starts a command. Linux kills the child with the *thread* that started it, and a test's thread ends with the
/// test: so one thread that never ends starts them all.
pub(crate) fn spawn(command: Command) -> std::io::Result<Child> {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static NURSE: LazyLock<Sender<Order>> = LazyLock::new(|| {
        let (orders, inbox) = channel::<Order>();
        std::thread::spawn(move || {
            inbox.into_iter().for_each(|(mut command, reply)| drop(reply.send(command.spawn())));
        });
        orders
    });
    let (reply, child) = channel();
    NURSE.send((command, reply)).expect("the nurse never ends");
    child.recv().expect("the nurse answers every order")
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
