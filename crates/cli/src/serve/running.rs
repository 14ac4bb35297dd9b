//! The running parts of one process: started, replaced by those of newer settings, and ended in order.

use super::Parts;
use crate::signals::Signals;
use crate::{doctor, lanes, settings};
use anyhow::Context;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use paceline_admin::{Api, AppState};
use paceline_core::config::{self, Config};
use paceline_store::{ClassRef, RedisStore, Store};
use paceline_worker::{Health, Worker, WorkerOptions};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

/// The running parts of one process.
pub(crate) struct Running {
    pub(crate) store: RedisStore,
    pub(crate) api: Option<SocketAddr>,
    pub(super) config: Arc<Config>,
    parts: Parts,
    deployment_id: Uuid,
    metrics: Option<PrometheusHandle>,
    /// The worker's health; another worker's after a reload.
    health: Arc<Mutex<Option<Arc<Health>>>>,
    door: Option<Api>,
    /// Ends what newer settings replace: the worker stops claiming and finishes, alerts stop.
    current: CancellationToken,
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
        let mut running = Self {
            store,
            api: None,
            config: Arc::new(config),
            parts,
            deployment_id,
            metrics: metrics_handle(),
            health: Arc::default(),
            door: None,
            current: signals.stop.child_token(),
            tasks: Vec::new(),
        };
        let config = running.config.clone();
        running.prepare(&config).await?;
        running.start_worker(&config, signals)?;
        match (parts, config.worker.listen) {
            (Parts::Worker, Some(listen)) => running.start_probes(listen, signals).await?,
            (Parts::Worker, None) => {}
            _ => running.start_admin(signals).await?,
        }
        Ok(running)
    }

    /// What has to be true in Redis before anything is claimed or accepted under these settings.
    async fn prepare(&self, config: &Config) -> anyhow::Result<()> {
        doctor::before_start(&self.store, config).await?;
        for class in config.classes.values() {
            self.store.declare(&ClassRef::of(config, class)).await?;
        }
        Ok(())
    }

    /// Goes over to newer settings: a new worker claims, the one before finishes what it has; the API answers the
    /// next request by them. An error leaves everything as it was.
    pub(super) async fn go_over_to(&mut self, config: Config, signals: &Signals) -> anyhow::Result<()> {
        let config = Arc::new(config);
        self.prepare(&config).await?;
        let state = self.state(&config)?;
        let before = std::mem::replace(&mut self.current, signals.stop.child_token());
        if let Err(error) = self.start_worker(&config, signals) {
            self.current = before;
            return Err(error);
        }
        before.cancel();
        if let Some(door) = self.door.clone() {
            self.start_alerts(&config, &state);
            door.replace(state);
        }
        self.config = config;
        self.tasks.retain(|task| !task.is_finished());
        Ok(())
    }

    fn start_worker(&mut self, config: &Config, signals: &Signals) -> anyhow::Result<()> {
        if self.parts == Parts::Admin {
            return Ok(());
        }
        let options = WorkerOptions {
            grace: Duration::from_millis(config.worker.grace_ms),
            poll: Duration::from_millis(config.worker.poll_ms),
            journal: config.worker.journal.clone().map(Into::into),
        };
        let worker = Worker::new(self.store.clone(), self.deployment_id, lanes::build(config)?, options);
        *self.health.lock().expect("no holder panics") = Some(worker.health());
        // A child, because a worker cancels it at the end of its grace.
        let abort = signals.abort.child_token();
        self.tasks.push(tokio::spawn(worker.run(self.current.clone(), abort)));
        let classes: Vec<&str> = config.classes.keys().map(paceline_core::Name::as_str).collect();
        tracing::info!(classes = classes.join(" "), "working");
        Ok(())
    }

    fn readiness(&self) -> paceline_admin::Readiness {
        let health = self.health.clone();
        Arc::new(move || {
            health.lock().expect("no holder panics").as_ref().and_then(|health| health.problem())
        })
    }

    /// What watches a worker has to be able to ask it.
    async fn start_probes(&mut self, listen: SocketAddr, signals: &Signals) -> anyhow::Result<()> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("worker.listen: cannot listen on {listen}"))?;
        tracing::info!("/livez, /readyz and /metrics on http://{}", listener.local_addr()?);
        let stop = signals.stop.clone().cancelled_owned();
        let served = paceline_admin::serve_probes(listener, self.readiness(), self.metrics.clone(), stop);
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::error!(%error, "the probes have ended");
            }
        }));
        Ok(())
    }

    fn state(&self, config: &Arc<Config>) -> anyhow::Result<AppState> {
        let mut tokens = Vec::new();
        for (name, token) in &config.tokens {
            let secret = settings::secret(&token.secret).with_context(|| format!("token.{name}.secret"))?;
            tokens.push((token.role, name.clone(), secret));
        }
        Ok(AppState {
            store: self.store.clone(),
            config: config.clone(),
            tokens,
            readiness: self.readiness(),
            metrics: self.metrics.clone(),
            deployment_id: self.deployment_id,
        })
    }

    async fn start_admin(&mut self, signals: &Signals) -> anyhow::Result<()> {
        let config = self.config.clone();
        let listen = config.admin.listen;
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("admin.listen: cannot listen on {listen}"))?;
        let address = listener.local_addr()?;
        let state = self.state(&config)?;
        self.start_alerts(&config, &state);
        let door = Api::new(state);
        self.door = Some(door.clone());
        let stop = signals.stop.clone().cancelled_owned();
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = door.serve(listener, stop).await {
                tracing::error!(%error, "the API has ended");
            }
        }));
        tracing::info!("the API listens on http://{address}");
        self.api = Some(address);
        Ok(())
    }

    fn start_alerts(&mut self, config: &Config, state: &AppState) {
        if let Some(url) = config.alerts.webhook.clone() {
            self.tasks.push(tokio::spawn(tell_alerts(state.clone(), url, self.current.clone())));
        }
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
