//! What this process has started and not yet settled, where sent twice means delivered twice. A Redis that lost its
//! last second believes such jobs are waiting; this process knows better and says so before it claims again.

use crate::lane::Running;
use paceline_store::{Doubted, HeldJob, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Jobs per call.
const MAX_BATCH: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct InHand {
    jobs: Mutex<BTreeMap<String, ([u8; 8], u64)>>,
    forgotten: AtomicBool,
}

impl InHand {
    pub(crate) fn add(&self, key: &str, birth: [u8; 8], deadline_ms: u64) {
        self.jobs.lock().expect("no holder panics").insert(key.to_owned(), (birth, deadline_ms));
    }

    /// Its end was refused for want of its lease: somebody took it over, or nobody knows that it was sent.
    pub(crate) fn was_stale(&self, key: &str) {
        if self.jobs.lock().expect("no holder panics").contains_key(key) {
            self.may_be_forgotten();
        }
    }

    /// It is settled, or its lease is somebody else's.
    pub(crate) fn remove(&self, key: &str, deadline_ms: u64) {
        let mut jobs = self.jobs.lock().expect("no holder panics");
        if jobs.get(key).is_some_and(|(_, known)| *known == deadline_ms) {
            jobs.remove(key);
        }
    }

    /// Redis was away: it may be another one, or the same with less in its memory.
    pub(crate) fn may_be_forgotten(&self) {
        self.forgotten.store(true, Ordering::SeqCst);
    }

    fn jobs(&self) -> Vec<HeldJob> {
        let jobs = self.jobs.lock().expect("no holder panics");
        jobs.iter().map(|(key, (birth, deadline_ms))| (key.clone(), *birth, *deadline_ms)).collect()
    }
}

/// Once after every trouble. What cannot be told now is told before the next claim.
pub(crate) async fn tell_doubts(running: &Running) -> Result<(), StoreError> {
    if !running.in_hand.forgotten.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    for chunk in running.in_hand.jobs().chunks(MAX_BATCH) {
        if let Err(error) = tell(running, chunk).await {
            running.in_hand.may_be_forgotten();
            return Err(error);
        }
    }
    Ok(())
}

/// Tells about some of them; those that Redis took for waiting are unconfirmed then.
async fn tell(running: &Running, jobs: &[HeldJob]) -> Result<(), StoreError> {
    let answers = running.store.doubt(&running.lane.at, jobs).await?;
    for ((key, _, deadline_ms), answer) in jobs.iter().zip(&answers) {
        if *answer != Doubted::Held {
            running.in_hand.remove(key, *deadline_ms);
        }
    }
    let doubted = answers.iter().filter(|answer| **answer == Doubted::Doubted).count();
    if doubted > 0 {
        tracing::warn!(
            class = running.name(),
            doubted,
            "Redis forgot that these were sent: a person decides"
        );
        metrics::counter!("paceline_doubted_total", "class" => running.name().to_owned())
            .increment(doubted as u64);
    }
    Ok(())
}
