//! One class as this process works it: its settings, its transport, its slots.

use crate::health::Health;
use crate::in_hand::InHand;
use paceline_core::Transport;
use paceline_core::config::Class;
use paceline_core::decide::Draws;
use paceline_core::vocabulary::ProviderRules;
use paceline_store::{ClassRef, RedisStore};
use rand::RngExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use uuid::Uuid;

/// What a worker needs to know of a class.
#[derive(Clone)]
pub struct Lane {
    /// Its settings.
    pub class: Class,
    /// How the store addresses it.
    pub at: ClassRef,
    /// How to read its provider's answers.
    pub rules: ProviderRules,
    /// How its jobs leave.
    pub transport: Arc<dyn Transport>,
    /// How long a lease stands: its deadline plus the margin.
    pub lease_ms: u64,
}

/// A lane with what its loops share.
pub(crate) struct Running {
    pub(crate) lane: Lane,
    pub(crate) store: RedisStore,
    pub(crate) deployment_id: Uuid,
    pub(crate) worker: String,
    pub(crate) poll: Duration,
    pub(crate) health: Arc<Health>,
    /// What was started and is not settled.
    pub(crate) in_hand: InHand,
    /// One permit per request that may be in flight.
    pub(crate) slots: Arc<Semaphore>,
    /// Something was pushed, or a hold was lifted.
    pub(crate) woken: Notify,
    /// Something was claimed or settled: the pace may have to change.
    pub(crate) at_work: Notify,
    /// Something was throttled: it has to change at once.
    pub(crate) throttled: Notify,
    retry: Mutex<Option<Instant>>,
    /// The retry time came nearer.
    pub(crate) nearer: Notify,
    hold: Mutex<Option<String>>,
    window_changes_ms: AtomicU64,
}

impl Running {
    pub(crate) fn new(
        lane: Lane,
        store: RedisStore,
        deployment_id: Uuid,
        worker: String,
        poll: Duration,
        health: Arc<Health>,
    ) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(lane.class.concurrency)),
            lane,
            store,
            deployment_id,
            worker,
            poll,
            health,
            in_hand: InHand::default(),
            woken: Notify::new(),
            at_work: Notify::new(),
            throttled: Notify::new(),
            retry: Mutex::new(None),
            nearer: Notify::new(),
            hold: Mutex::new(None),
            window_changes_ms: AtomicU64::new(0),
        }
    }

    /// The class's name, for logs and labels.
    pub(crate) fn name(&self) -> &str {
        self.lane.class.name.as_str()
    }

    /// A job of this class is due again after `delay`; its own process need not ask Redis to know.
    pub(crate) fn due_in(&self, delay: Duration) {
        let at = Instant::now() + delay;
        let mut retry = self.retry.lock().expect("no holder panics");
        if retry.is_none_or(|earlier| at < earlier) {
            *retry = Some(at);
            self.nearer.notify_one();
        }
    }

    /// Remembers the cause of the hold that binds now; gives back the one before.
    pub(crate) fn held_by(&self, cause: Option<String>) -> Option<String> {
        std::mem::replace(&mut self.hold.lock().expect("no holder panics"), cause)
    }

    /// The send window may be another than when it was last looked at.
    pub(crate) fn window_changed_by(&self, now_ms: u64) -> bool {
        self.window_changes_ms.load(Ordering::Relaxed) <= now_ms
    }

    pub(crate) fn window_changes_at(&self, ms: u64) {
        self.window_changes_ms.store(ms, Ordering::Relaxed);
    }

    /// The earliest known retry.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        *self.retry.lock().expect("no holder panics")
    }

    /// Takes the known retry away before a claim, which will tell what is due next.
    pub(crate) fn forget_retry(&self) {
        *self.retry.lock().expect("no holder panics") = None;
    }
}

/// Chance, drawn at the edge and handed to the pure core.
pub(crate) fn draws() -> Draws {
    let mut rng = rand::rng();
    Draws { spread: rng.random::<f64>(), jitter: rng.random::<f64>() }
}
