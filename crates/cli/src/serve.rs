//! `paceline serve`, `worker` and `admin`: the parts, their start-up checks, and their end.

use crate::args::ServeOptions;
use crate::private_redis::{Durability, PrivateRedis};
use crate::signals::Signals;
use crate::{doctor, lanes, settings};
use anyhow::{Context, bail};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use paceline_admin::AppState;
use paceline_core::config::{self, Config};
use paceline_store::{ClassRef, RedisStore, Store};
use paceline_worker::{Health, Worker, WorkerOptions};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

/// Which parts of Paceline run in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    Worker,
    Admin,
    Both,
}

/// Where a private Redis keeps its data.
const PRIVATE_FOLDER: &str = ".paceline/redis";

pub(crate) async fn run(
    path: Option<&Path>,
    parts: Parts,
    options: &ServeOptions,
) -> anyhow::Result<ExitCode> {
    let mut config = settings::load(path)?;
    if let Some(url) = &options.redis {
        config.redis.url.clone_from(url);
    }
    if let Some(listen) = options.listen {
        if !listen.ip().is_loopback() && config.tokens.is_empty() {
            bail!("--listen {listen} is not loopback, and there is no [token.*]: anyone could send");
        }
        config.admin.listen = listen;
    }
    if config.classes.is_empty() {
        bail!(
            "no class is in use: give one a credential (`paceline check-config --defaults` shows every setting)"
        );
    }
    let signals = Signals::listen()?;
    let private = match (config.redis.url.is_empty(), parts) {
        (false, _) => None,
        (true, Parts::Both) => {
            let durability = match config.redis.durability {
                config::Durability::Always => Durability::Always,
                _ => Durability::Everysec,
            };
            Some(PrivateRedis::start(Path::new(PRIVATE_FOLDER), durability).await?)
        }
        (true, _) => bail!("redis.url is not set; only `serve` starts a private Redis"),
    };
    if let Some(redis) = &private {
        config.redis.url = redis.url();
        tracing::info!(url = config.redis.url, folder = PRIVATE_FOLDER, "started a private Redis");
    }
    let served = Running::start(config, parts, &signals).await;
    let outcome = match served {
        Ok(running) => {
            running.until_stopped(&signals).await;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
    };
    if let Some(redis) = private {
        redis.stop().await;
    }
    outcome
}

/// The running parts of one process.
pub(crate) struct Running {
    pub(crate) store: RedisStore,
    pub(crate) api: Option<SocketAddr>,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// Starts the parts; they end by `signals`.
    pub(crate) async fn start(config: Config, parts: Parts, signals: &Signals) -> anyhow::Result<Self> {
        let timeout = Duration::from_millis(config.redis.response_timeout_ms);
        let mut store = RedisStore::open(&config.redis.url, config.namespace.clone(), timeout)?;
        if config.redis.durability == config::Durability::Replica {
            store = store.waiting_for_replica();
        }
        let deployment_id = deployment(&store, &config).await?;
        doctor::before_start(&store, &config).await?;
        let classes: Vec<ClassRef> =
            config.classes.values().map(|class| ClassRef::of(&config, class)).collect();
        for class in &classes {
            store.declare(class).await?;
        }
        let config = Arc::new(config);
        let mut running = Self { store: store.clone(), api: None, tasks: Vec::new() };
        let health = match parts {
            Parts::Admin => None,
            _ => Some(running.start_worker(&config, deployment_id, signals)?),
        };
        if parts != Parts::Worker {
            running.start_admin(&config, deployment_id, health, signals).await?;
        }
        Ok(running)
    }

    fn start_worker(
        &mut self,
        config: &Config,
        deployment_id: Uuid,
        signals: &Signals,
    ) -> anyhow::Result<Arc<Health>> {
        let options = WorkerOptions {
            grace: Duration::from_millis(config.worker.grace_ms),
            poll: Duration::from_millis(config.worker.poll_ms),
        };
        let worker = Worker::new(self.store.clone(), deployment_id, lanes::build(config)?, options);
        let health = worker.health();
        self.tasks.push(tokio::spawn(worker.run(signals.stop.clone(), signals.abort.clone())));
        let classes: Vec<&str> = config.classes.keys().map(paceline_core::Name::as_str).collect();
        tracing::info!(classes = classes.join(" "), "working");
        Ok(health)
    }

    async fn start_admin(
        &mut self,
        config: &Arc<Config>,
        deployment_id: Uuid,
        health: Option<Arc<Health>>,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let mut tokens = Vec::new();
        for (name, token) in &config.tokens {
            let secret = settings::secret(&token.secret).with_context(|| format!("token.{name}.secret"))?;
            tokens.push((token.role, name.clone(), secret));
        }
        let listener = TcpListener::bind(config.admin.listen)
            .await
            .with_context(|| format!("admin.listen: cannot listen on {}", config.admin.listen))?;
        let address = listener.local_addr()?;
        let state = AppState {
            store: self.store.clone(),
            config: config.clone(),
            tokens,
            readiness: Arc::new(move || health.as_ref().and_then(|health| health.problem())),
            metrics: metrics_handle(),
            deployment_id,
        };
        if let Some(url) = config.alerts.webhook.clone() {
            self.tasks.push(tokio::spawn(tell_alerts(state.clone(), url, signals.stop.clone())));
        }
        let stop = signals.stop.clone();
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = paceline_admin::serve(listener, state, stop.cancelled_owned()).await {
                tracing::error!(%error, "the API has ended");
            }
        }));
        tracing::info!("the API listens on http://{address}");
        self.api = Some(address);
        Ok(())
    }

    /// Waits for the first signal, then for the parts to end in order.
    pub(crate) async fn until_stopped(self, signals: &Signals) {
        signals.stop.cancelled().await;
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

/// Posts each alert as it begins, stands and is resolved.
async fn tell_alerts(state: AppState, url: Url, stop: CancellationToken) {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().unwrap_or_default();
    let told = paceline_admin::watch_alerts(state, |notice| {
        let request = client.post(url.clone()).json(&notice);
        async move {
            let answer = request.send().await.and_then(reqwest::Response::error_for_status);
            // The URL may hold a secret: it stays out of the log.
            let failed = answer.map_err(reqwest::Error::without_url).err();
            if let Some(error) = &failed {
                tracing::warn!(%error, event = notice.event, kind = notice.alert.kind, "an alert could not be posted");
            }
            failed.is_none()
        }
    });
    tokio::select! { () = told => {}, () = stop.cancelled() => {} }
}

/// Asks again while Redis is away: a worker that starts before its Redis is no reason to give up.
async fn deployment(store: &RedisStore, config: &Config) -> anyhow::Result<Uuid> {
    let fresh = Uuid::now_v7();
    let mut told = false;
    loop {
        match store.deployment(config.deployment_id, fresh).await {
            Ok(id) => {
                if id == fresh && config.deployment_id.is_none() {
                    tracing::warn!(
                        "this is a new deployment: put deployment_id = \"{id}\" into the settings, so that idempotency keys survive the loss of Redis"
                    );
                }
                return Ok(id);
            }
            Err(error) if error.is_passing() => {
                if !told {
                    tracing::warn!(%error, "waiting for Redis");
                    told = true;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// One recorder per process; a second start in the same process (the demo) shares it.
fn metrics_handle() -> Option<PrometheusHandle> {
    PrometheusBuilder::new().install_recorder().ok()
}
