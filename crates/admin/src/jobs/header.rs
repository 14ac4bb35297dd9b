//! A record's packed header in full words, as a person reads it at 3 a.m.

use paceline_core::job::{Flags, Job};
use paceline_store::Record;
use paceline_store::record::VERSION;
use serde::Serialize;

/// The words of DESIGN §4, in the order they are packed. A time of 0 is none.
#[derive(Debug, Serialize)]
pub(crate) struct HeaderView {
    version: u8,
    flags: Vec<&'static str>,
    birth: String,
    spent: u8,
    throttles: u16,
    lapses: u8,
    run: u8,
    attempts: u16,
    cost: u16,
    revision: u8,
    replays: u16,
    expires_at_ms: u64,
    created_at_ms: u64,
    throttled_since_ms: u64,
    sent_since_ms: u64,
}

impl HeaderView {
    /// `None` where the record cannot be read.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let Record::Job(job) = record else { return None };
        let Job { counters, .. } = **job;
        Some(Self {
            version: VERSION,
            flags: flag_words(job.flags),
            birth: job.birth.iter().map(|byte| format!("{byte:02x}")).collect(),
            spent: counters.spent,
            throttles: counters.throttles,
            lapses: counters.lapses,
            run: counters.run,
            attempts: counters.attempts,
            cost: job.cost,
            revision: job.revision,
            replays: job.replays,
            expires_at_ms: job.expires_at_ms.unwrap_or(0),
            created_at_ms: job.created_at_ms,
            throttled_since_ms: job.throttled_since_ms.unwrap_or(0),
            sent_since_ms: job.sent_since_ms.unwrap_or(0),
        })
    }
}

fn flag_words(flags: Flags) -> Vec<&'static str> {
    let words = [
        (flags.ambiguous, "ambiguous"),
        (flags.started, "started"),
        (flags.cancel, "cancel"),
        (flags.late, "late"),
    ];
    words.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect()
}
