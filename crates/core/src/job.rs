//! A job as the worker holds it between claim and settle.

use crate::history::History;
use crate::name::JobKey;

/// Marks of a job. A script may set `cancel` while a worker holds the job, so settle merges them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Flags {
    /// Some attempt may have been accepted.
    pub ambiguous: bool,
    /// The worker marked that it is about to write (providers that do not deduplicate).
    pub started: bool,
    /// Someone cancelled it in flight.
    pub cancel: bool,
    /// It was accepted after its lease was lost.
    pub late: bool,
}

/// The counters of a job. They never mix: a throttle spends nothing, a lost worker counts as a lapse only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Attempts that count against the cap: transient failures, unknown answers, ambiguous ends.
    pub spent: u8,
    /// How often it was told "not right now".
    pub throttles: u16,
    /// Leases lost with their worker.
    pub lapses: u8,
    /// Throttles and transient ends in a row: the exponent of the backoff.
    pub run: u8,
    /// Requests on the wire so far.
    pub attempts: u16,
}

/// One message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The caller's key.
    pub key: JobKey,
    /// The mark of this record's life: a key erased and pushed again has another.
    pub birth: [u8; 8],
    /// Its counters.
    pub counters: Counters,
    /// Its marks.
    pub flags: Flags,
    /// Rises when a person edits the payload; part of the send id.
    pub revision: u8,
    /// How often it was replayed.
    pub replays: u16,
    /// What it weighs against a budget.
    pub cost: u16,
    /// After this moment it is not sent any more, in ms since the epoch.
    pub expires_at_ms: Option<u64>,
    /// When it was pushed.
    pub created_at_ms: u64,
    /// When the throttling began that its horizon is measured from.
    pub throttled_since_ms: Option<u64>,
    /// The first attempt that the remote side may have seen, from which its idempotency window runs.
    pub sent_since_ms: Option<u64>,
    /// The campaign it is counted under; may be empty.
    pub campaign: String,
    /// The producer's document, byte for byte.
    pub document: Vec<u8>,
    /// What happened so far.
    pub history: History,
}

impl Job {
    /// A job that was just pushed, for tests and embedders.
    pub fn new(key: JobKey, document: Vec<u8>, created_at_ms: u64) -> Self {
        Self {
            key,
            birth: [0; 8],
            counters: Counters::default(),
            flags: Flags::default(),
            revision: 0,
            replays: 0,
            cost: 1,
            expires_at_ms: None,
            created_at_ms,
            throttled_since_ms: None,
            sent_since_ms: None,
            campaign: String::new(),
            document,
            history: History::default(),
        }
    }
}
