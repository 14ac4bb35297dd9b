//! A whole Paceline in miniature: a real Redis, the sandbox provider over HTTP, workers in this process or as
//! processes of their own that can be killed.

use crate::binary;
use crate::redis_server::RedisServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use paceline_core::config::{Class, Config, Sources};
use paceline_core::{Name, State, Transport};
use paceline_rehearsal::{Ledger, Sandbox, Scenario};
use paceline_store::{ClassRef, Depths, NewJob, RedisStore, Store, Stored, Walk};
use paceline_transport::{Credential, HttpTransport};
use paceline_worker::{Health, Lane, Worker, WorkerOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// One class, `bulk`, at a provider that deduplicates; short times so that leases lapse within a test.
pub const ONE_CLASS: &str = r#"
namespace = "t"
deployment_id = "00000000-0000-4000-8000-000000000007"
[worker]
lease_margin_ms = 1000
poll_ms = 500
grace_ms = 3000
[provider.sandbox]
base_url = "{base_url}"
deduplicates = true
message_id = "body:/id"
[defaults.credential]
provider = "sandbox"
rate = "10000/s"
burst = 1000
start = "ceiling"
adapts = false
[credential.bulk-key]
[class.bulk]
credential = "bulk-key"
path = "/v1/send"
deadline_ms = 2000
backoff_base_ms = 20
backoff_cap_ms = 200
[defaults.provider]
connect_timeout_ms = 1000
first_byte_timeout_ms = 1500
"#;

/// The parts on one stage.
pub struct Stage {
    /// Its Redis.
    pub redis: RedisServer,
    /// Its provider.
    pub sandbox: Sandbox,
    /// Its settings, as the workers have them.
    pub config: Config,
    /// A store of the test's own.
    pub store: RedisStore,
    folder: TempDir,
}

impl Stage {
    /// The settings are TOML; `{base_url}` becomes the sandbox's address.
    pub async fn new(scenario: Scenario, settings: &str) -> Self {
        Self::over(RedisServer::start(), scenario, settings).await
    }

    /// On a Redis that exists already.
    pub async fn over(redis: RedisServer, scenario: Scenario, settings: &str) -> Self {
        let url = redis.url();
        Self::through(redis, &url, scenario, settings).await
    }

    /// With the workers going to Redis by another way (a proxy) than the test itself.
    pub async fn through(redis: RedisServer, url: &str, scenario: Scenario, settings: &str) -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let sandbox = Sandbox::start(listen, scenario).await.expect("the sandbox starts");
        let settings = settings.replace("{base_url}", &sandbox.base_url());
        let sources = Sources { file: Some(("test", &settings)), environment: &[] };
        let mut config = Config::read(sources).unwrap_or_else(|faults| panic!("{faults:#?}"));
        url.clone_into(&mut config.redis.url);
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::write(folder.path().join("paceline.toml"), &settings).expect("it can be written to");
        let store = RedisStore::open(&redis.url(), config.namespace.clone(), Duration::from_secs(2))
            .expect("a good URL");
        let stage = Self { redis, sandbox, config, store, folder };
        for class in stage.config.classes.keys() {
            stage.store.declare(&stage.class(class.as_str())).await.expect("redis runs");
        }
        stage
    }

    /// How the store addresses a class.
    pub fn class(&self, name: &str) -> ClassRef {
        let name = Name::new(name).expect("tests use valid names");
        ClassRef::of(&self.config, &self.config.classes[&name])
    }

    /// Pushes jobs `0..n` of a class as `<class>:<i>`.
    pub async fn push(&self, class: &str, n: usize) -> Vec<String> {
        let jobs: Vec<NewJob> = (0..n).map(|i| crate::store::job(&format!("{class}:{i}"))).collect();
        for chunk in jobs.chunks(100) {
            self.store.push(&self.class(class), chunk).await.expect("redis runs");
        }
        jobs.into_iter().map(|job| job.key.to_string()).collect()
    }

    /// A worker in this process, over HTTP.
    pub fn worker(&self) -> InProcess {
        self.worker_with(|class| http(&self.config, class))
    }

    /// A worker in this process with a transport of the test's own.
    pub fn worker_with(&self, transport: impl Fn(&Class) -> Arc<dyn Transport>) -> InProcess {
        InProcess::start(embedded(&self.config, transport))
    }

    /// A worker as a process of its own.
    pub fn process(&self) -> Process {
        self.process_with(&[])
    }

    /// The same, with these variables in its environment.
    pub fn process_with(&self, environment: &[(&str, &str)]) -> Process {
        Process::start_with(self.folder.path(), &["worker", "--redis", &self.config.redis.url], environment)
    }

    /// The settings, as a file.
    pub fn settings_file(&self) -> PathBuf {
        self.folder.path().join("paceline.toml")
    }

    /// The deployment id that every worker here has.
    pub fn deployment_id(&self) -> Uuid {
        self.config.deployment_id.expect("the settings of a stage name one")
    }

    /// How deep a class is.
    pub async fn depths(&self, class: &str) -> Depths {
        self.store.depths(&self.class(class)).await.expect("redis runs")
    }

    /// One job.
    pub async fn job(&self, class: &str, key: &str) -> Stored {
        self.store.get(&self.class(class), key).await.expect("redis runs").expect("it exists")
    }

    /// What the provider saw.
    pub fn ledger(&self) -> Ledger {
        self.sandbox.ledger()
    }

    /// Waits until so many jobs of a class are in a state.
    pub async fn await_count(&self, class: &str, state: State, n: u64) {
        let began = Instant::now();
        loop {
            let depths = match self.store.depths(&self.class(class)).await {
                Ok(depths) if depths.of(state) >= n => return,
                other => other,
            };
            assert!(
                began.elapsed() < PATIENCE,
                "{class} never had {n} {state}: {depths:?}\n{:?}",
                self.ledger().summary
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Records and indexes agree, whatever happened before.
    pub async fn assert_consistent(&self) {
        for class in self.config.classes.keys() {
            let mut next = Some(Walk::START);
            while let Some(walk) = next {
                let class = self.class(class.as_str());
                let step = self.store.reconcile_step(&class, &walk, false).await.expect("redis runs");
                assert_eq!(step.wrong, [], "record and indexes disagree");
                next = step.next;
            }
        }
    }

    /// Waits until nothing of a class waits or is in flight; the reconciler finds nothing to do then.
    pub async fn await_drained(&self, class: &str) -> Depths {
        let began = Instant::now();
        loop {
            let depths = self.store.depths(&self.class(class)).await;
            if let Ok(depths) = &depths
                && depths.waiting() + depths.of(State::InFlight) == 0
            {
                self.assert_consistent().await;
                return depths.clone();
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{class} never drained: {depths:?}\n{:?}",
                self.ledger().summary
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// How the jobs of a class leave over HTTP.
pub fn http(config: &Config, class: &Class) -> Arc<dyn Transport> {
    Arc::new(HttpTransport::new(config.provider_of(class), Credential::None).expect("good settings"))
}

/// A worker for every class of a configuration, as a program embeds it.
pub fn embedded(config: &Config, transport: impl Fn(&Class) -> Arc<dyn Transport>) -> Worker {
    let timeout = Duration::from_millis(config.redis.response_timeout_ms);
    let store = RedisStore::open(&config.redis.url, config.namespace.clone(), timeout).expect("a good URL");
    let lane = |class: &Class| Lane {
        at: ClassRef::of(config, class),
        rules: config.provider_of(class).rules.clone(),
        lease_ms: config.lease_ms(class),
        transport: transport(class),
        class: class.clone(),
    };
    let options = WorkerOptions {
        grace: Duration::from_millis(config.worker.grace_ms),
        poll: Duration::from_millis(config.worker.poll_ms),
    };
    let deployment_id = config.deployment_id.expect("the settings of a stage name one");
    Worker::new(store, deployment_id, config.classes.values().map(lane).collect(), options)
}

/// Longer than anything here should take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worker in this process; dropping it stops it.
pub struct InProcess {
    /// Its health.
    pub health: Arc<Health>,
    stop: CancellationToken,
    abort: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl InProcess {
    fn start(worker: Worker) -> Self {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let health = worker.health();
        let task = tokio::spawn(worker.run(stop.clone(), abort.clone()));
        Self { health, stop, abort, task: Some(task) }
    }

    /// The first signal: finish within the grace.
    pub fn tell_to_stop(&self) {
        self.stop.cancel();
    }

    /// The second signal: hand back at once.
    pub fn tell_to_abort(&self) {
        self.abort.cancel();
    }

    /// Stops in order and waits.
    pub async fn stopped(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.expect("a worker never panics");
        }
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.stop.cancel();
        self.abort.cancel();
    }
}

/// A `paceline` process; dropping it kills it.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts it in `folder`, where its paceline.toml is.
    pub fn start(folder: &std::path::Path, args: &[&str]) -> Self {
        Self::start_with(folder, args, &[])
    }

    /// The same, with these variables in its environment.
    pub fn start_with(folder: &std::path::Path, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let log =
            if std::env::var_os("PACELINE_TEST_LOGS").is_some() { Stdio::inherit() } else { Stdio::null() };
        // Dies with the test, however the test ends.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(binary::paceline())
            .args(args)
            .envs(environment.iter().copied())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary is built and setpriv (util-linux) is there");
        Self { child }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Any signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("our own child can be signalled");
    }

    /// SIGKILL, and gone.
    pub fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }

    /// Waits for its end; whether it was a good one.
    pub fn ended(mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
