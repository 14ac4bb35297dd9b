//! Puts the loops together, keeps them alive, and ends them in order.

use crate::claimer::Claimer;
use crate::health::Health;
use crate::lane::{Lane, Running};
use crate::settler::Settler;
use crate::{pacer, reaper, reconciler, sweeper};
use paceline_core::Name;
use paceline_store::{RedisStore, Store};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Times of the loops.
#[derive(Debug, Clone, Copy)]
pub struct WorkerOptions {
    /// After the first signal: time to finish what is on the wire.
    pub grace: Duration,
    /// The longest sleep of an idle loop.
    pub poll: Duration,
}

/// Works any number of classes until it is told to stop.
pub struct Worker {
    store: RedisStore,
    deployment_id: Uuid,
    lanes: Vec<Lane>,
    options: WorkerOptions,
    health: Arc<Health>,
}

/// How long writing the last outcomes may take after everything has ended.
const LAST_WRITES: Duration = Duration::from_secs(5);

impl Worker {
    /// A worker for these classes. `deployment_id` is part of every send id: the same on every worker.
    pub fn new(store: RedisStore, deployment_id: Uuid, lanes: Vec<Lane>, options: WorkerOptions) -> Self {
        let names = lanes.iter().map(|lane| lane.class.name.to_string());
        let health = Arc::new(Health::new(names, options.poll + Duration::from_secs(5)));
        Self { store, deployment_id, lanes, options, health }
    }

    /// Whether it can do its work; shared with whoever answers readiness.
    pub fn health(&self) -> Arc<Health> {
        self.health.clone()
    }

    /// Runs until `stop`: then no more claims, what is on the wire has the grace to finish, the rest is handed
    /// back. `abort` ends the grace at once.
    pub async fn run(self, stop: CancellationToken, abort: CancellationToken) {
        let worker = Uuid::now_v7().simple().to_string();
        let running: Vec<Arc<Running>> = self
            .lanes
            .into_iter()
            .map(|lane| {
                let (store, health) = (self.store.clone(), self.health.clone());
                Arc::new(Running::new(
                    lane,
                    store,
                    self.deployment_id,
                    worker.clone(),
                    self.options.poll,
                    health,
                ))
            })
            .collect();
        let attempts = TaskTracker::new();
        let refs: Vec<_> = running.iter().map(|running| running.lane.at.clone()).collect();
        let waker = tokio::spawn(wake(self.store.waker(&refs), running.clone()));
        let mut claimers = Vec::new();
        let mut settlers = Vec::new();
        let mut doors = Vec::new();
        for running in running {
            let (settler, written) = Settler::new(running.clone());
            settlers.push(tokio::spawn(written.run()));
            claimers.extend(loops(&running, &settler, &attempts, &stop, &abort));
            doors.push(settler);
        }
        stop.cancelled().await;
        finish(&attempts, self.options.grace, &abort).await;
        for claimer in claimers {
            let _ = claimer.await;
        }
        drop(doors);
        let written = futures_util::future::join_all(settlers);
        if tokio::time::timeout(LAST_WRITES, written).await.is_err() {
            tracing::error!(
                "outcomes could not be written before the end; their leases will lapse and be reaped"
            );
        }
        waker.abort();
    }
}

/// The loops of one class, each started again should it ever panic.
fn loops(
    running: &Arc<Running>,
    settler: &Settler,
    attempts: &TaskTracker,
    stop: &CancellationToken,
    abort: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let declare = {
        let running = running.clone();
        tokio::spawn(async move {
            if let Err(error) = running.store.declare(&running.lane.at).await {
                tracing::warn!(class = running.name(), %error, "limits could not be declared yet; the first claim will");
            }
            if running.lane.class.windows.is_none() {
                // A configuration before this one may have left it closed.
                let _ = running.store.window(&running.lane.at, 0).await;
            }
        })
    };
    let claim = {
        let (running, settler, attempts, abort) =
            (running.clone(), settler.clone(), attempts.clone(), abort.clone());
        let stop = stop.clone();
        move || {
            let claimer = Claimer {
                running: running.clone(),
                settler: settler.clone(),
                attempts: attempts.clone(),
                stop: stop.clone(),
                abort: abort.clone(),
            };
            claimer.run()
        }
    };
    let reap = {
        let (running, settler, stop) = (running.clone(), settler.clone(), stop.clone());
        move || reaper::run(running.clone(), settler.clone(), stop.clone())
    };
    let sweep = {
        let (running, stop) = (running.clone(), stop.clone());
        move || sweeper::run(running.clone(), stop.clone())
    };
    let pace = {
        let (running, stop) = (running.clone(), stop.clone());
        move || pacer::run(running.clone(), stop.clone())
    };
    let reconcile = {
        let (running, stop) = (running.clone(), stop.clone());
        move || reconciler::run(running.clone(), stop.clone())
    };
    vec![
        declare,
        tokio::spawn(kept_alive("claimer", stop.clone(), claim)),
        tokio::spawn(kept_alive("reaper", stop.clone(), reap)),
        tokio::spawn(kept_alive("sweeper", stop.clone(), sweep)),
        tokio::spawn(kept_alive("pacer", stop.clone(), pace)),
        tokio::spawn(kept_alive("reconciler", stop.clone(), reconcile)),
    ]
}

async fn kept_alive<F>(name: &'static str, stop: CancellationToken, start: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Err(panic) = tokio::spawn(start()).await {
        tracing::error!(%panic, "the {name} ended by a panic and is started again");
        metrics::counter!("paceline_loop_restarts_total", "loop" => name).increment(1);
        if stop.is_cancelled() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Lets attempts finish within the grace, then has the rest handed back.
async fn finish(attempts: &TaskTracker, grace: Duration, abort: &CancellationToken) {
    attempts.close();
    tokio::select! {
        () = attempts.wait() => {}
        () = tokio::time::sleep(grace) => {}
        () = abort.cancelled() => {}
    }
    abort.cancel();
    attempts.wait().await;
}

async fn wake(waker: paceline_store::Waker, running: Vec<Arc<Running>>) {
    let each = |class: &Name, act: fn(&Running)| {
        running.iter().filter(|running| running.lane.class.name == *class).for_each(|running| act(running));
    };
    let woken = |class: &Name| each(class, |running| running.woken.notify_one());
    let broken = |class: &Name| each(class, |running| running.in_hand.may_be_forgotten());
    waker.run(woken, broken).await;
}
