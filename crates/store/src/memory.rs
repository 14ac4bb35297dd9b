//! The movements in memory: an executable model of the scripts, and a store for tests that need no Redis.
//!
//! Its clock is its own. It starts at a fixed moment and moves by [`MemoryStore::advance`] only, so a test of
//! retries, leases and rates waits for nothing and sees the same numbers every time. One conformance suite runs
//! against this and against Redis.

mod bucket;
mod budget;
mod card;
mod claim;
mod hold;
mod jobs;
mod look;
mod pace;
mod push;
mod returns;
mod settle;
mod withdraw;
mod world;

use crate::keys::{BudgetRef, ClassRef};
use crate::movement::*;
use crate::reconcile::{Reconcile, Reconciled};
use crate::record::Record;
use paceline_core::State;
use paceline_core::budget::Limits;
use paceline_core::decide::HoldCause;
use paceline_core::policy::Trips;
use std::sync::{Arc, Mutex, MutexGuard};
use world::World;

/// Paceline's data in this process. Cheap to clone; clones share everything.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    world: Arc<Mutex<World>>,
}

impl MemoryStore {
    /// The moment every store's clock starts at, in ms since the epoch: 2026-11-30T00:53:20Z.
    pub const EPOCH_MS: u64 = 1_796_000_000_000;

    /// An empty store at [`Self::EPOCH_MS`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Its clock.
    pub fn now_ms(&self) -> u64 {
        self.world().now_ms
    }

    /// Lets time go by.
    pub fn advance(&self, ms: u64) {
        self.world().now_ms += ms;
    }

    /// A copy that goes its own way from here: what a snapshot or an append-only file is to Redis.
    pub fn snapshot(&self) -> Self {
        Self { world: Arc::new(Mutex::new(self.world().clone())) }
    }

    /// The counts of the last `minutes` minutes, oldest first: `(minute, {code|outcome|state: n})`.
    pub fn counts(&self, class: &ClassRef, minutes: u64) -> Vec<(u64, Vec<(String, u64)>)> {
        self.world().counts(class, minutes)
    }

    /// The last decisions about a budget's pace, newest first.
    pub fn decisions(&self, class: &ClassRef, budget: &BudgetRef, max: usize) -> Vec<PaceDecision> {
        self.world().decisions(class, budget, max)
    }

    /// Puts a record that nobody wrote in the place of a job's, for tests of what cannot be read; its index entry
    /// stays. A job takes the place of one that can be read: so a test lets it expire.
    pub fn plant(&self, class: &ClassRef, key: &str, record: Record) {
        self.world().plant(class, key, record);
    }

    /// Never held over an await: every movement is one synchronous step, as a script is.
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no movement panics while it holds the world")
    }
}

impl Store for MemoryStore {
    async fn declare(&self, class: &ClassRef) -> Result<()> {
        self.world().declare(class);
        Ok(())
    }

    async fn push(&self, class: &ClassRef, jobs: &[NewJob]) -> Result<Vec<Pushed>> {
        self.world().push(class, jobs)
    }

    async fn claim(&self, class: &ClassRef, ask: &ClaimAsk) -> Result<Claim> {
        self.world().claim(class, ask)
    }

    async fn start(
        &self,
        class: &ClassRef,
        deadline_ms: u64,
        jobs: &[(String, [u8; 8])],
    ) -> Result<Vec<bool>> {
        Ok(self.world().start(class, deadline_ms, jobs))
    }

    async fn settle(
        &self,
        class: &ClassRef,
        trips: &Trips,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>> {
        Ok(self.world().settle(class, trips, settlements))
    }

    async fn doubt(&self, class: &ClassRef, jobs: &[HeldJob]) -> Result<Vec<Doubted>> {
        Ok(self.world().doubt(class, jobs))
    }

    async fn reap(&self, class: &ClassRef, max_jobs: usize, lease_ms: u64) -> Result<Batch> {
        Ok(self.world().reap(class, max_jobs, lease_ms))
    }

    async fn replay(
        &self,
        class: &ClassRef,
        pace: ReplayPace,
        jobs: &[(String, State)],
    ) -> Result<Vec<Replayed>> {
        Ok(self.world().replay(class, pace, jobs))
    }

    async fn confirm(&self, class: &ClassRef, jobs: &[Confirmation]) -> Result<Vec<Confirmed>> {
        Ok(self.world().confirm(class, jobs))
    }

    async fn cancel(&self, class: &ClassRef, keys: &[String]) -> Result<Vec<Cancelled>> {
        Ok(self.world().cancel(class, keys))
    }

    async fn erase(&self, class: &ClassRef, key: &str) -> Result<Erased> {
        Ok(self.world().erase(class, key))
    }

    async fn sweep(
        &self,
        class: &ClassRef,
        state: State,
        older_than_ms: u64,
        max_jobs: usize,
    ) -> Result<usize> {
        Ok(self.world().sweep(class, state, older_than_ms, max_jobs))
    }

    async fn hold(
        &self,
        class: &ClassRef,
        on: Held<'_>,
        cause: Option<HoldCause>,
        delay_ms: Option<u64>,
        by: &str,
    ) -> Result<()> {
        self.world().hold(class, on, cause, delay_ms, by);
        Ok(())
    }

    async fn window(&self, class: &ClassRef, closed_ms: u64) -> Result<()> {
        self.world().window(class, closed_ms);
        Ok(())
    }

    async fn pace(&self, class: &ClassRef, budget: &BudgetRef) -> Result<BudgetState> {
        self.world().pace(class, budget)
    }

    async fn adjust(&self, class: &ClassRef, budget: &BudgetRef, adjustment: &Adjustment) -> Result<bool> {
        Ok(self.world().adjust(class, budget, adjustment))
    }

    async fn limit(
        &self,
        class: &ClassRef,
        budget: &BudgetRef,
        limits: &Limits,
        by: Option<&str>,
    ) -> Result<()> {
        self.world().limit(class, budget, limits, by)
    }

    async fn explain(&self, class: &ClassRef, key: Option<&str>) -> Result<Option<Explained>> {
        self.world().explain(class, key)
    }

    async fn reconcile(&self, class: &ClassRef, jobs: &[Reconcile]) -> Result<Vec<Reconciled>> {
        Ok(self.world().reconcile(class, jobs))
    }

    async fn get(&self, class: &ClassRef, key: &str) -> Result<Option<Stored>> {
        Ok(self.world().get(class, key))
    }

    async fn depths(&self, class: &ClassRef) -> Result<Depths> {
        Ok(self.world().depths(class))
    }

    async fn list(
        &self,
        class: &ClassRef,
        state: State,
        after: &Cursor,
        max_jobs: usize,
    ) -> Result<Vec<Listed>> {
        Ok(self.world().list(class, state, after, max_jobs))
    }
}
