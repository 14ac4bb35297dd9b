//! What really arrived, and what became of it: the provider's side of the story.

mod book;

pub(crate) use book::{Book, Line};

use serde::{Deserialize, Serialize};

/// The ledger as it stood at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The totals.
    pub summary: LedgerSummary,
    /// One line per send id, in the order of first arrival.
    pub entries: Vec<LedgerEntry>,
    /// One line per second in which something arrived, oldest first; at most the last day's worth.
    pub timeline: Vec<LedgerSecond>,
}

impl Ledger {
    /// The line of a send id.
    pub fn entry(&self, send_id: &str) -> Option<&LedgerEntry> {
        self.entries.iter().find(|entry| entry.send_id == send_id)
    }
}

/// The totals of a ledger.
///
/// Every request is exactly one of: throttled, refused, unanswered, or answered with an acceptance. Whether a
/// message was delivered is another question: an unanswered one was, and an error may hide a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LedgerSummary {
    /// Requests that arrived whole, whatever became of them.
    pub requests: u64,
    /// Told "not right now": by the limit, or by an error with status 429.
    pub throttled: u64,
    /// Answered with any other error.
    pub refused: u64,
    /// Send ids that were delivered at least once.
    pub accepted: u64,
    /// Messages delivered in total.
    pub delivered: u64,
    /// Deliveries beyond the first of each send id.
    pub duplicates: u64,
    /// Repeats that were recognised and not delivered again.
    pub repeats_deduplicated: u64,
    /// Accepted, and never answered.
    pub unanswered: u64,
}

/// What arrived under one send id. Times are in µs since the Unix epoch, by this process's wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The idempotency key; `none:<n>` for a request that carried none.
    pub send_id: String,
    /// Who sent it first. Serialized with its secret cut to the last characters.
    #[serde(serialize_with = "masked")]
    pub credential: String,
    /// The text at `/key` of the first JSON payload that had one, to match arrivals with pushes.
    pub payload_key: Option<String>,
    /// The message id of the first acceptance.
    pub message_id: Option<String>,
    /// When the first request arrived.
    pub first_arrived_us: u64,
    /// When the last request arrived.
    pub last_arrived_us: u64,
    /// When it was first delivered; an answer follows `latency_ms` later, if at all.
    pub first_accepted_us: Option<u64>,
    /// Requests.
    pub arrivals: u32,
    /// Requests told "not right now".
    pub throttled: u32,
    /// Requests answered with any other error.
    pub refused: u32,
    /// Of those, the ones that no waiting mends: "not ever".
    #[serde(default)]
    pub refused_for_good: u32,
    /// Times the message was delivered; above 1 the recipient got it again.
    pub delivered: u32,
    /// Repeats recognised and not delivered again.
    pub repeats_deduplicated: u32,
    /// Requests accepted and never answered.
    pub unanswered: u32,
}

/// What arrived in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LedgerSecond {
    /// The second, since the Unix epoch.
    pub at_s: u64,
    /// Requests.
    pub arrivals: u64,
    /// Requests told "not right now".
    pub throttled: u64,
    /// Send ids delivered for the first time.
    pub accepted: u64,
}

/// Whoever can reach the control paths reads the ledger, and somebody will rehearse with a real key.
fn masked<S: serde::Serializer>(credential: &str, serializer: S) -> Result<S::Ok, S::Error> {
    /// No real key is that short; a rehearsal's made-up one is.
    const SHORT: usize = 16;
    const TAIL: usize = 4;
    let (scheme, secret) = match credential.split_once(' ') {
        Some((scheme, secret)) => (format!("{scheme} "), secret),
        None => (String::new(), credential),
    };
    if secret.len() <= SHORT {
        return serializer.serialize_str(credential);
    }
    let tail: String = secret.chars().skip(secret.chars().count().saturating_sub(TAIL)).collect();
    serializer.serialize_str(&format!("{scheme}…{tail}"))
}
