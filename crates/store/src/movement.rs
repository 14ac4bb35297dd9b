//! The movements of a job, as a trait that Redis and the memory store both fulfil, and their shapes.

mod budgets;

use crate::error::StoreError;
use crate::keys::{BudgetRef, ClassRef};
use crate::reconcile::{Reconcile, Reconciled};
use crate::record::Record;
pub use budgets::{Adjustment, BudgetState, PaceDecision};
use paceline_core::budget::Limits;
use paceline_core::decide::{HoldCause, Probe};
use paceline_core::policy::Trips;
use paceline_core::{Decision, JobKey, State};
use std::future::Future;

/// The result of a call.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A job to push, checked at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// The caller's key.
    pub key: JobKey,
    /// Not due before, in ms since the epoch; 0: now.
    pub at_ms: u64,
    /// Not sent after, in ms since the epoch; 0: never expires.
    pub expires_at_ms: u64,
    /// What it weighs against a budget.
    pub cost: u16,
    /// The campaign it is counted under; may be empty.
    pub campaign: String,
    /// Hex; empty: the SHA-1 of the document's bytes.
    pub fingerprint: String,
    /// The producer's document, kept byte for byte.
    pub document: Vec<u8>,
}

/// What became of one pushed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// It is new.
    Created,
    /// Its key exists with the same content; the state it is in.
    Duplicate(State),
    /// Its key exists with other content; nothing was changed.
    Conflict(State),
    /// It would break a record: the field at fault.
    Invalid(String),
}

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimAsk {
    /// The worker, for the memory of its last claim.
    pub worker: String,
    /// Unique per claim; the same again repeats it.
    pub nonce: String,
    /// No more than can start now.
    pub max_jobs: usize,
    /// How long the leases stand.
    pub lease_ms: u64,
    /// Jobs whose tokens arrive within this time may come along, each with its offset.
    pub lookahead_ms: u64,
    /// From this many lost leases on a job comes alone.
    pub solo_lapses: u8,
}

/// What a claim got.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// Jobs, under one lease.
    Jobs(Batch),
    /// Something holds the class back; the term that binds, and for how long, where that is known.
    Wait {
        /// In ms; `None`: until something changes.
        ms: Option<u64>,
        /// `hold:pause`, `rate`, `max_in_flight`.
        term: String,
    },
    /// Nothing is due.
    Empty {
        /// When something will be, in ms from now.
        next_ms: Option<u64>,
    },
}

/// Jobs under one lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Redis's clock at the claim.
    pub now_ms: u64,
    /// When the lease lapses; the fencing token.
    pub deadline_ms: u64,
    /// When another claim may get something, in ms from now.
    pub next_ms: Option<u64>,
    /// The hold that this claim probes.
    pub probe: Option<Probe>,
    /// The jobs.
    pub jobs: Vec<Claimed>,
}

/// One claimed or reaped job.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Its key as it stands in the index.
    pub key: String,
    /// When to send it, in ms from the claim.
    pub offset_ms: u64,
    /// Its record.
    pub record: Record,
}

/// One attempt's end, decided.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Settlement {
    /// The key as it was claimed.
    pub key: String,
    /// The birth of the record that was claimed; zeros where it could not be read: the job is parked.
    pub birth: [u8; 8],
    /// The lease it was claimed under.
    pub deadline_ms: u64,
    /// When it was claimed, by Redis's clock: what it says of the sender, it says of that moment.
    pub claimed_ms: u64,
    /// It was a probe under a hold: the next one may go.
    pub probed: bool,
    /// What to do.
    pub decision: Decision,
    /// Rust decided again after `Held`.
    pub decided_again: bool,
    /// `<provider code>|<outcome>`, counted per minute with the state it led to.
    pub count: String,
    /// The history from now on, as lines; of a job that is over only the last is kept.
    pub history: Vec<u8>,
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done: the job is there now.
    Moved(State),
    /// An acceptance whose lease was lost: the job was there and is submitted now.
    Late(State),
    /// Accepted a second time, under another provider id.
    Twice,
    /// A repeat: it was done before.
    Already,
    /// The lease was lost and the end is no acceptance: dropped, counted.
    Stale,
    /// The record is gone or has another birth: dropped, counted.
    Gone,
    /// The record cannot be read by this version: parked where a person sees it.
    Parked,
    /// A hold overtook the attempt: decide again.
    Held(HoldCause),
}

/// A job that a worker believes it holds: its key, its birth, the end of its lease.
pub type HeldJob = (String, [u8; 8], u64);

/// What Redis makes of a job that a worker believes it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubted {
    /// Its lease stands.
    Held,
    /// Its claim was forgotten: it is unconfirmed now.
    Doubted,
    /// Somebody else has it, or it went on.
    Elsewhere,
}

/// What became of one replayed dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// It is pending again.
    Replayed,
    /// It is in another state than the one it was seen in.
    Moved(Option<State>),
    /// Its record is gone, or its content was erased.
    Missing,
}

/// What a person knows of a job that nobody else can tell about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// Its key.
    pub key: String,
    /// The remote side has it; else it is sent again.
    pub accepted: bool,
    /// The attempt's line that says who said so: JSON, ending in a line break.
    pub line: Vec<u8>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// It is submitted or pending now.
    Confirmed(State),
    /// Nobody has to decide about it: it is in another state.
    Moved(State),
    /// No such job, or one that cannot be read.
    Missing,
}

/// What became of a cancelled job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled, or unconfirmed where an attempt may have been accepted.
    Cancelled(State),
    /// It is in flight; its next end that is no acceptance cancels it.
    Marked,
    /// It was over or dead before.
    Over(State),
    /// No such job.
    Missing,
}

/// What became of an erased job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erased {
    /// Its content is gone; its receipt is there.
    Erased(State),
    /// Its worker holds the content: cancel it first.
    InFlight,
    /// No such job.
    Missing,
}

/// One job, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Redis's clock.
    pub now_ms: u64,
    /// Where it is; `None`: in no index.
    pub state: Option<State>,
    /// Its score there: next attempt, lease deadline, or when it was settled.
    pub score_ms: u64,
    /// Its record.
    pub record: Record,
}

/// A hold that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub cause: HoldCause,
    /// Until when; `None`: until someone lifts it.
    pub until_ms: Option<u64>,
    /// Who put it there.
    pub by: String,
}

/// How deep a class is, each number a cardinality of the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depths {
    /// Redis's clock.
    pub now_ms: u64,
    /// Jobs per state, in the order of [`State::ALL`].
    pub counts: [u64; 9],
    /// Of the queued, those that are not due yet.
    pub scheduled: u64,
    /// The age of the oldest job that is due.
    pub oldest_due_ms: Option<u64>,
    /// The age of the oldest first entry into pending.
    pub oldest_pending_ms: Option<u64>,
    /// The class's hold, then each budget's.
    pub holds: Vec<Option<Hold>>,
}

impl Depths {
    /// Jobs in a state.
    pub fn of(&self, state: State) -> u64 {
        self.counts[usize::from(state.number()) - 1]
    }

    /// Queued and pending.
    pub fn waiting(&self) -> u64 {
        self.of(State::Queued) + self.of(State::Pending)
    }
}

/// A place in a list: behind this score and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The score of the last entry seen.
    pub score_ms: u64,
    /// Its key.
    pub key: String,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its score.
    pub score_ms: u64,
    /// Its record; a document that lives apart from it is not loaded.
    pub record: Record,
}

/// How a replay goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayPace {
    /// Time between two replayed jobs, in ms.
    pub interval_ms: f64,
}

/// Why something does not go now.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Redis's clock.
    pub now_ms: u64,
    /// How long the term binds; `None`: until something changes.
    pub wait_ms: Option<u64>,
    /// `hold:retry_after`, `max_in_flight`, `quota`, `rate`, `shed`; empty: nothing binds.
    pub term: String,
    /// When something of the class is due, in ms from now; `None`: nothing waits.
    pub next_due_ms: Option<u64>,
    /// The state of the job that was asked about.
    pub state: Option<State>,
    /// Its score there.
    pub score_ms: u64,
    /// How many stand before it there.
    pub rank: Option<u64>,
}

/// The movements. Each is one Lua file of the same name; each is safe to repeat.
pub trait Store: Send + Sync + 'static {
    /// Writes what the configuration says of a class.
    fn declare(&self, class: &ClassRef) -> impl Future<Output = Result<()>> + Send;
    /// New jobs into queued; at most 200.
    fn push(&self, class: &ClassRef, jobs: &[NewJob]) -> impl Future<Output = Result<Vec<Pushed>>> + Send;
    /// Due jobs into in flight.
    fn claim(&self, class: &ClassRef, ask: &ClaimAsk) -> impl Future<Output = Result<Claim>> + Send;
    /// Marks jobs as about to be written; which of them still may be.
    fn start(
        &self,
        class: &ClassRef,
        deadline_ms: u64,
        jobs: &[(String, [u8; 8])],
    ) -> impl Future<Output = Result<Vec<bool>>> + Send;
    /// Jobs out of in flight; at most 200. A key named twice is settled in order.
    fn settle(
        &self,
        class: &ClassRef,
        trips: &Trips,
        settlements: &[Settlement],
    ) -> impl Future<Output = Result<Vec<Settled>>> + Send;
    /// Jobs that a worker holds and whose claim Redis may have forgotten; at most 200.
    fn doubt(&self, class: &ClassRef, jobs: &[HeldJob]) -> impl Future<Output = Result<Vec<Doubted>>> + Send;
    /// Lapsed leases, under a new short one.
    fn reap(
        &self,
        class: &ClassRef,
        max_jobs: usize,
        lease_ms: u64,
    ) -> impl Future<Output = Result<Batch>> + Send;
    /// Dead letters (failed ones too) back to pending; at most 200.
    fn replay(
        &self,
        class: &ClassRef,
        pace: ReplayPace,
        jobs: &[(String, State)],
    ) -> impl Future<Output = Result<Vec<Replayed>>> + Send;
    /// What a person knows of jobs in failed, deferred or unconfirmed; at most 200.
    fn confirm(
        &self,
        class: &ClassRef,
        jobs: &[Confirmation],
    ) -> impl Future<Output = Result<Vec<Confirmed>>> + Send;
    /// Jobs withdrawn; at most 200.
    fn cancel(
        &self,
        class: &ClassRef,
        keys: &[String],
    ) -> impl Future<Output = Result<Vec<Cancelled>>> + Send;
    /// A job's content removed, its receipt kept.
    fn erase(&self, class: &ClassRef, key: &str) -> impl Future<Output = Result<Erased>> + Send;
    /// Jobs that are over, forgotten; how many. In any other state none.
    fn sweep(
        &self,
        class: &ClassRef,
        state: State,
        older_than_ms: u64,
        max_jobs: usize,
    ) -> impl Future<Output = Result<usize>> + Send;
    /// A person's hold on the class; `cause` `None` lifts whatever hold is there.
    fn hold(
        &self,
        class: &ClassRef,
        on: Held<'_>,
        cause: Option<HoldCause>,
        delay_ms: Option<u64>,
        by: &str,
    ) -> impl Future<Output = Result<()>> + Send;
    /// The class's send window is closed for so long; 0: it is open.
    fn window(&self, class: &ClassRef, closed_ms: u64) -> impl Future<Output = Result<()>> + Send;
    /// A budget as it stands.
    fn pace(&self, class: &ClassRef, budget: &BudgetRef) -> impl Future<Output = Result<BudgetState>> + Send;
    /// Another pace, unless somebody changed it first; whether it is in force.
    fn adjust(
        &self,
        class: &ClassRef,
        budget: &BudgetRef,
        adjustment: &Adjustment,
    ) -> impl Future<Output = Result<bool>> + Send;
    /// Limits by a person's hand; `by` `None` gives them back to the configuration.
    fn limit(
        &self,
        class: &ClassRef,
        budget: &BudgetRef,
        limits: &Limits,
        by: Option<&str>,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Why the class's next job, or the job of that key, does not go now; `None`: there is no such job.
    fn explain(
        &self,
        class: &ClassRef,
        key: Option<&str>,
    ) -> impl Future<Output = Result<Option<Explained>>> + Send;
    /// One job.
    fn get(&self, class: &ClassRef, key: &str) -> impl Future<Output = Result<Option<Stored>>> + Send;
    /// How deep a class is.
    fn depths(&self, class: &ClassRef) -> impl Future<Output = Result<Depths>> + Send;
    /// Jobs looked at, record and indexes together, or moved to where they belong; at most 200.
    fn reconcile(
        &self,
        class: &ClassRef,
        jobs: &[Reconcile],
    ) -> impl Future<Output = Result<Vec<Reconciled>>> + Send;
    /// A page of a state, oldest first.
    fn list(
        &self,
        class: &ClassRef,
        state: State,
        after: &Cursor,
        max_jobs: usize,
    ) -> impl Future<Output = Result<Vec<Listed>>> + Send;
}

/// What a person's hold is put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held<'a> {
    /// The class.
    Class,
    /// One of its budgets.
    Budget(&'a paceline_core::Name),
}
