//! Claims what can start now, starts it, and sleeps until there is a reason to claim again.

use crate::attempt::{self, Lease};
use crate::backoff::RedisBackoff;
use crate::in_hand;
use crate::lane::Running;
use crate::settler::Settler;
use paceline_core::window::Window;
use paceline_store::{Batch, Claim, ClaimAsk, Record, Store, StoreError};
use rand::RngExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Jobs per claim: a script call near or below 1 ms for everybody else.
const MAX_BATCH: usize = 50;
/// Jobs whose tokens arrive within this time come along, each with its own moment to leave.
const LOOKAHEAD_MS: u64 = 20;
/// A wake-up while something holds the class back is answered no sooner than this after the last claim.
const CALM: Duration = Duration::from_millis(20);

pub(crate) struct Claimer {
    pub(crate) running: Arc<Running>,
    pub(crate) settler: Settler,
    pub(crate) attempts: TaskTracker,
    /// Stop claiming.
    pub(crate) stop: CancellationToken,
    /// Hand back what is left.
    pub(crate) abort: CancellationToken,
}

/// A claim under way: repeated with the same nonce until it is answered, and late from its first sending.
struct Asking {
    nonce: String,
    first_sent: Instant,
    max_jobs: usize,
}

/// Why the next claim waits.
struct Pause {
    until: Instant,
    /// A hold or the pace: a push changes nothing, a lifted hold does.
    held_back: bool,
}

impl Claimer {
    pub(crate) async fn run(self) {
        let mut backoff = RedisBackoff::default();
        let mut asking: Option<Asking> = None;
        while !self.stop.is_cancelled() {
            let Some(permits) = self.free_slots(asking.as_ref().map(|asking| asking.max_jobs)).await else {
                return;
            };
            let ask = asking.take().unwrap_or_else(|| Asking {
                nonce: Uuid::now_v7().to_string(),
                first_sent: Instant::now(),
                max_jobs: permits.len(),
            });
            self.running.forget_retry();
            self.mind_window().await;
            match self.claim_what_is_certain(&ask).await {
                Ok(claim) => {
                    backoff.reset();
                    self.running.health.claimed(self.running.name());
                    let pause = self.act_on(claim, ask.first_sent, permits).await;
                    self.sleep(pause).await;
                }
                Err(error) => {
                    drop(permits);
                    asking = self.trouble(error, ask).await;
                    tokio::select! { () = backoff.pause() => {}, () = self.stop.cancelled() => {} }
                }
            }
        }
    }

    /// At least one slot, at most a batch; `None` once told to stop.
    async fn free_slots(&self, wanted: Option<usize>) -> Option<Vec<OwnedSemaphorePermit>> {
        let slots = &self.running.slots;
        let mut permits = vec![self.free_slot().await?];
        while permits.len() < wanted.unwrap_or(MAX_BATCH).min(MAX_BATCH) {
            let Ok(permit) = slots.clone().try_acquire_owned() else { break };
            permits.push(permit);
        }
        Some(permits)
    }

    /// The first slot that is or becomes free.
    async fn free_slot(&self) -> Option<OwnedSemaphorePermit> {
        let slots = &self.running.slots;
        if let Ok(permit) = slots.clone().try_acquire_owned() {
            return Some(permit);
        }
        self.running.health.full(self.running.name());
        let permit = tokio::select! {
            permit = slots.clone().acquire_owned() => permit.expect("slots are never closed"),
            () = self.stop.cancelled() => return None,
        };
        self.running.health.claimed(self.running.name());
        Some(permit)
    }

    /// Where a send window closes or opens, the class is held or free from then on, and everybody sees why.
    async fn mind_window(&self) {
        let (running, now_ms) = (&self.running, self.running.store.now_ms());
        let Some(windows) = running.lane.class.windows.as_ref().filter(|_| running.window_changed_by(now_ms))
        else {
            return;
        };
        let (closed_ms, changes_ms) = match windows.at(now_ms) {
            Window::Open(until_ms) => (0, until_ms),
            Window::Closed(until_ms) => (until_ms.saturating_sub(now_ms), until_ms),
        };
        match running.store.window(&running.lane.at, closed_ms).await {
            Ok(()) => running.window_changes_at(changes_ms),
            Err(error) => {
                tracing::warn!(class = running.name(), %error, "its send window is looked at again");
            }
        }
    }

    /// What this process holds and Redis has forgotten leaves the queues before anything is claimed from them.
    async fn claim_what_is_certain(&self, asking: &Asking) -> Result<Claim, StoreError> {
        in_hand::tell_doubts(&self.running).await?;
        self.claim(asking).await
    }

    async fn claim(&self, asking: &Asking) -> Result<Claim, StoreError> {
        let lane = &self.running.lane;
        let ask = ClaimAsk {
            worker: self.running.worker.clone(),
            nonce: asking.nonce.clone(),
            max_jobs: asking.max_jobs,
            lease_ms: lane.lease_ms,
            lookahead_ms: LOOKAHEAD_MS,
            solo_lapses: lane.class.policy.solo_lapses,
        };
        self.running.store.claim(&lane.at, &ask).await
    }

    /// The same claim again after trouble that may pass; a fresh one after anything else.
    async fn trouble(&self, error: StoreError, asking: Asking) -> Option<Asking> {
        self.running.health.trouble();
        self.running.in_hand.may_be_forgotten();
        metrics::counter!("paceline_store_errors_total", "call" => "claim").increment(1);
        match error {
            StoreError::Undeclared => {
                let declared = self.running.store.declare(&self.running.lane.at).await;
                tracing::warn!(
                    class = self.running.name(),
                    ?declared,
                    "limits were gone from Redis; declared again"
                );
                None
            }
            error if error.is_passing() => {
                tracing::warn!(class = self.running.name(), %error, "claim failed; repeating it");
                Some(asking)
            }
            error => {
                tracing::error!(class = self.running.name(), %error, "claim failed");
                None
            }
        }
    }

    /// Starts what was claimed; says how long to wait before the next claim.
    async fn act_on(&self, claim: Claim, first_sent: Instant, permits: Vec<OwnedSemaphorePermit>) -> Pause {
        let now = Instant::now();
        let poll = self.running.poll.mul_f64(rand::rng().random_range(0.8..1.0));
        let within_poll = |ms: Option<u64>| now + ms.map_or(poll, |ms| poll.min(Duration::from_millis(ms)));
        self.tell(&claim);
        match claim {
            Claim::Empty { next_ms } => Pause { until: within_poll(next_ms), held_back: false },
            // Room comes with somebody's settle, here or elsewhere.
            Claim::Wait { ms: None, term } if term == "max_in_flight" => {
                Pause { until: now + CALM, held_back: true }
            }
            Claim::Wait { ms, .. } => Pause { until: within_poll(ms), held_back: true },
            Claim::Jobs(batch) => {
                let got_all = batch.jobs.len() >= permits.len();
                let next_ms = batch.next_ms;
                self.start(batch, first_sent, permits).await;
                let until = if got_all { now } else { within_poll(next_ms) };
                Pause { until, held_back: !got_all && next_ms.is_some_and(|ms| ms > 0) }
            }
        }
    }

    /// One line when a hold begins to bind and one when it does no more, whoever put it there.
    fn tell(&self, claim: &Claim) {
        let hold = match claim {
            Claim::Wait { term, .. } => term.strip_prefix("hold:").map(str::to_owned),
            _ => None,
        };
        let before = self.running.held_by(hold.clone());
        match (claim, before, hold) {
            (Claim::Wait { ms, .. }, before, Some(cause)) if before.as_ref() != Some(&cause) => {
                tracing::info!(class = self.running.name(), cause, wait_ms = ms, "held");
            }
            (_, Some(cause), None) => tracing::info!(class = self.running.name(), cause, "no longer held"),
            _ => {}
        }
    }

    async fn start(&self, batch: Batch, first_sent: Instant, permits: Vec<OwnedSemaphorePermit>) {
        let solo = batch.jobs.iter().any(|claimed| match &claimed.record {
            Record::Job(job) => job.counters.lapses >= self.running.lane.class.policy.solo_lapses,
            _ => false,
        });
        let lease = Lease {
            deadline_ms: batch.deadline_ms,
            redis_now_ms: batch.now_ms,
            first_sent,
            claimed: Instant::now(),
            probe: batch.probe,
        };
        let (running, settler, abort) = (self.running.clone(), self.settler.clone(), self.abort.clone());
        let started =
            self.attempts.spawn(attempt::run_batch(running, settler, abort, lease, batch.jobs, permits));
        if solo {
            // A job that took two workers with it is alone in flight of its class, as far as this process goes.
            self.running.health.full(self.running.name());
            let _ = started.await;
            self.settler.settled().await;
            self.running.health.claimed(self.running.name());
        }
    }

    async fn sleep(&self, pause: Pause) {
        let calm = Instant::now() + if pause.held_back { CALM } else { Duration::ZERO };
        loop {
            let until = self.running.retry_at().map_or(pause.until, |retry| {
                if pause.held_back { pause.until } else { retry.min(pause.until) }
            });
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                () = self.running.woken.notified() => {
                    tokio::time::sleep_until(calm.min(until)).await;
                    return;
                }
                () = self.running.nearer.notified() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }
}
