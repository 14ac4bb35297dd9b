//! Writes what became of attempts: coalesced, kept while Redis is away, and written until it sticks.

use crate::attempt::{Lease, settlement};
use crate::backoff::RedisBackoff;
use crate::journal::Journal;
use crate::lane::Running;
use crate::steps::{Step, reached};
use paceline_core::decide::Signal;
use paceline_core::history::Attempt;
use paceline_core::{Job, JobKey, Outcome, Seen, State};
use paceline_store::{Settled, Settlement, Store, StoreError};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

/// Settlements per call.
const MAX_BATCH: usize = 50;
/// How long the first of a batch waits for company.
const COALESCE: Duration = Duration::from_millis(2);

/// An attempt that ended and is not written yet. Its slot is free only once it is.
pub(crate) struct Ended {
    pub(crate) key: String,
    pub(crate) job: Box<Job>,
    pub(crate) outcome: Outcome,
    pub(crate) attempt: Attempt,
    pub(crate) lease: Lease,
    pub(crate) seen: Seen,
    /// It is in the journal.
    pub(crate) kept: bool,
    #[expect(dead_code, reason = "held, not read: dropping it frees the slot")]
    pub(crate) slot: Option<OwnedSemaphorePermit>,
}

/// The door to a class's settler.
#[derive(Clone)]
pub(crate) struct Settler {
    ended: mpsc::UnboundedSender<(Instant, Ended)>,
    open: Arc<Open>,
}

/// How many ends are not written yet.
#[derive(Default)]
struct Open {
    count: AtomicUsize,
    none: Notify,
}

impl Settler {
    /// The door and the loop behind it. Slots bound what can be in between.
    pub(crate) fn new(running: Arc<Running>) -> (Self, SettlerLoop) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let open = Arc::new(Open::default());
        (Self { ended: sender, open: open.clone() }, SettlerLoop { running, receiver, open, has_kept: false })
    }

    pub(crate) fn settle(&self, ended: Ended) {
        self.open.count.fetch_add(1, Ordering::SeqCst);
        if self.ended.send((Instant::now(), ended)).is_err() {
            tracing::error!("the settler has ended; the lease will lapse and be reaped");
        }
    }

    /// A record nobody here can read: only its index entry moves, whatever the decision says.
    pub(crate) fn park(&self, key: &str, lease: Lease, slot: OwnedSemaphorePermit) {
        let stand_in = JobKey::new("unreadable").expect("a constant key is valid");
        self.settle(Ended {
            key: key.to_owned(),
            job: Box::new(Job::new(stand_in, Vec::new(), 0)),
            outcome: Outcome::Invalid { reason: "record".into() },
            attempt: Attempt::default(),
            lease,
            seen: Seen::default(),
            kept: false,
            slot: Some(slot),
        });
    }

    /// Waits until everything handed in so far is written.
    pub(crate) async fn settled(&self) {
        loop {
            let none = self.open.none.notified();
            if self.open.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            none.await;
        }
    }
}

pub(crate) struct SettlerLoop {
    running: Arc<Running>,
    receiver: mpsc::UnboundedReceiver<(Instant, Ended)>,
    open: Arc<Open>,
    has_kept: bool,
}

impl SettlerLoop {
    /// Until every door is closed and everything is written.
    pub(crate) async fn run(mut self) {
        let mut waiting: VecDeque<(Instant, Ended)> = VecDeque::new();
        let mut backoff = RedisBackoff::default();
        loop {
            if waiting.is_empty() {
                match self.receiver.recv().await {
                    Some(ended) => waiting.push_back(ended),
                    None => return,
                }
                self.gather(&mut waiting).await;
            }
            while let Ok(ended) = self.receiver.try_recv() {
                waiting.push_back(ended);
            }
            let oldest = waiting.front().map(|(since, _)| since.into_std());
            match self.write(&mut waiting).await {
                Ok(()) => {
                    backoff.reset();
                    self.tell_unwritten(None);
                    self.forget_kept(&waiting);
                }
                Err(error) => {
                    self.running.health.trouble();
                    self.tell_unwritten(oldest);
                    metrics::counter!("paceline_store_errors_total", "call" => "settle").increment(1);
                    tracing::warn!(class = self.running.name(), unwritten = waiting.len(), %error, "outcomes are kept and written later");
                    self.keep(&mut waiting);
                    backoff.pause().await;
                }
            }
        }
    }

    fn tell_unwritten(&self, oldest: Option<std::time::Instant>) {
        self.running.health.unwritten_since(self.running.name(), oldest);
        let age_s = oldest.map_or(0.0, |since| since.elapsed().as_secs_f64());
        metrics::gauge!("paceline_oldest_unwritten_seconds", "class" => self.running.name().to_owned())
            .set(age_s);
    }

    /// On the disk too, should this process end before Redis is back.
    fn keep(&mut self, waiting: &mut VecDeque<(Instant, Ended)>) {
        let Some(journal) = &self.running.journal else { return };
        // A lapse is Redis's own knowledge: whoever reaps next finds it again.
        let new = || {
            waiting.iter().map(|(_, ended)| ended).filter(|ended| !ended.kept && !ended.outcome.is_lapse())
        };
        let settlements: Vec<Settlement> = new().map(|ended| settlement(&self.running, ended)).collect();
        if settlements.is_empty() {
            return;
        }
        match journal.keep(self.running.name(), &settlements) {
            Ok(()) => {
                self.has_kept = true;
                waiting.iter_mut().for_each(|(_, ended)| ended.kept = true);
            }
            Err(error) => tracing::error!(class = self.running.name(), %error, "outcomes are in memory only"),
        }
    }

    fn forget_kept(&mut self, waiting: &VecDeque<(Instant, Ended)>) {
        if !self.has_kept || !waiting.is_empty() {
            return;
        }
        self.has_kept = false;
        if let Some(Err(error)) = self.running.journal.as_ref().map(Journal::clear) {
            tracing::warn!(class = self.running.name(), %error, "the journal was not emptied; a repeat does no harm");
        }
    }

    /// Waits a moment for company, never longer than [`COALESCE`].
    async fn gather(&mut self, waiting: &mut VecDeque<(Instant, Ended)>) {
        let until = Instant::now() + COALESCE;
        while waiting.len() < MAX_BATCH {
            match tokio::time::timeout_at(until, self.receiver.recv()).await {
                Ok(Some(ended)) => waiting.push_back(ended),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Writes one batch from the front; on an error everything stays.
    async fn write(&mut self, waiting: &mut VecDeque<(Instant, Ended)>) -> Result<(), StoreError> {
        let batch = take_batch(waiting);
        let settlements: Vec<Settlement> =
            batch.iter().map(|(_, ended)| settlement(&self.running, ended)).collect();
        reached(Step::Settling);
        let lane = &self.running.lane;
        match self.running.store.settle(&lane.at, &lane.class.policy.trips, &settlements).await {
            Ok(settled) => {
                reached(Step::Settled);
                self.tell_pacer(&settlements);
                for (((since, ended), settlement), settled) in batch.into_iter().zip(settlements).zip(settled)
                {
                    if let Some(again) = self.finish(ended, &settlement, settled) {
                        waiting.push_back((since, again));
                    }
                }
                Ok(())
            }
            Err(error @ StoreError::Bug { .. }) if batch.len() == 1 => {
                // One that cannot be written must not stop the others; its lease lapses and it is reaped.
                tracing::error!(class = self.running.name(), key = batch[0].1.key, %error, "an outcome cannot be written");
                self.close(1);
                Ok(())
            }
            Err(error) => {
                let alone = matches!(error, StoreError::Bug { .. });
                batch.into_iter().rev().for_each(|ended| waiting.push_front(ended));
                if alone { self.write_one_by_one(waiting).await } else { Err(error) }
            }
        }
    }

    fn tell_pacer(&self, settlements: &[Settlement]) {
        let throttled = |signal| matches!(signal, Signal::Throttled | Signal::AccountThrottled);
        if settlements.iter().any(|settlement| throttled(settlement.decision.signal)) {
            self.running.throttled.notify_one();
        }
        self.running.at_work.notify_one();
    }

    async fn write_one_by_one(&mut self, waiting: &mut VecDeque<(Instant, Ended)>) -> Result<(), StoreError> {
        let mut rest = std::mem::take(waiting);
        while let Some(ended) = rest.pop_front() {
            let mut single = VecDeque::from([ended]);
            let written = Box::pin(self.write(&mut single)).await;
            waiting.extend(single);
            if let Err(error) = written {
                waiting.extend(rest);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tells the loops and the counters; gives back an end that must be decided again.
    fn finish(&self, mut ended: Ended, settlement: &Settlement, settled: Settled) -> Option<Ended> {
        match settled {
            Settled::Held(cause) => {
                ended.seen.hold = Some(cause);
                return Some(ended);
            }
            Settled::Moved(state) if state.is_waiting() => {
                self.running.due_in(Duration::from_millis(settlement.decision.delay_ms));
            }
            Settled::Late(_) | Settled::Twice | Settled::Stale | Settled::Gone => {
                tracing::warn!(
                    class = self.running.name(),
                    key = ended.key,
                    ?settled,
                    "settled after its lease was lost"
                );
            }
            _ => {}
        }
        if settled == Settled::Stale {
            self.running.in_hand.was_stale(&ended.key);
        } else {
            self.running.in_hand.remove(&ended.key, settlement.deadline_ms);
        }
        let state = match settled {
            Settled::Moved(state) => state.as_str(),
            Settled::Late(_) => State::Submitted.as_str(),
            Settled::Parked => State::Deferred.as_str(),
            _ => "dropped",
        };
        metrics::counter!("paceline_settled_total", "class" => self.running.name().to_owned(), "state" => state).increment(1);
        self.close(1);
        None
    }

    fn close(&self, n: usize) {
        if self.open.count.fetch_sub(n, Ordering::SeqCst) == n {
            self.open.none.notify_waiters();
        }
    }
}

/// At most [`MAX_BATCH`] from the front, each key once: a script reads every record before it writes any.
fn take_batch(waiting: &mut VecDeque<(Instant, Ended)>) -> Vec<(Instant, Ended)> {
    let mut keys = HashSet::new();
    let mut batch = Vec::new();
    while batch.len() < MAX_BATCH {
        match waiting.front() {
            Some((_, ended)) if keys.insert(ended.key.clone()) => {
                batch.push(waiting.pop_front().expect("the front was just seen"));
            }
            _ => break,
        }
    }
    batch
}
