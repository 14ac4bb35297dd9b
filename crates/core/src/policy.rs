//! What a class wants: caps, patience, and what to do when nobody can tell.

use crate::backoff::Backoff;

/// What a class does with an ambiguous end when the provider cannot deduplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAmbiguous {
    /// Try again: better twice than not at all.
    Retry,
    /// Ask a person: better late than twice.
    Ask,
}

/// One policy per class. See `paceline.toml` for what each number means to an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Above this many spent attempts a job is deferred.
    pub max_spent: u8,
    /// The same for answers that are not in the vocabulary.
    pub max_unknown: u8,
    /// This many lost leases park a job.
    pub max_lapses: u8,
    /// From this many lost leases on, a job is claimed alone.
    pub solo_lapses: u8,
    /// A job throttled for this long is deferred.
    pub throttle_horizon_ms: u64,
    /// Tries of any kind in a trailing hour.
    pub tries_per_hour: usize,
    /// The window of the jitter.
    pub backoff: Backoff,
    /// What to do where nobody can tell and the provider cannot deduplicate.
    pub on_ambiguous: OnAmbiguous,
    /// How long the provider recognises a send id; `None`: it does not deduplicate.
    pub dedup_window_ms: Option<u64>,
    /// When to silence a sender.
    pub trips: Trips,
}

/// When a run of bad ends puts a hold on the sender, and how that hold probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trips {
    /// Refusals of the sender in a row that make its credential suspect.
    pub refused_run: u8,
    /// Terminal answers in a row, no acceptance between, that make a class suspect.
    pub terminal_run: u8,
    /// Transient or ambiguous ends in a row that count as an outage.
    pub failing_run: u8,
    /// Recipients that are throttled within the window before the next such throttle is the credential's.
    pub recipient_run: u8,
    /// That window.
    pub recipient_window_ms: u64,
    /// How often a suspect sender is probed.
    pub suspect_probe_ms: u64,
    /// The first probe of an outage; each failed one doubles the wait up to `outage_probe_cap_ms`.
    pub outage_probe_ms: u64,
    /// The longest wait between probes of an outage.
    pub outage_probe_cap_ms: u64,
    /// A hold by `Retry-After` is never longer than this; then one probe goes.
    pub retry_after_cap_ms: u64,
    /// How often a quota hold without a known turnover is probed.
    pub quota_probe_ms: u64,
}

impl Default for Trips {
    fn default() -> Self {
        Self {
            refused_run: 3,
            terminal_run: 20,
            failing_run: 5,
            recipient_run: 3,
            recipient_window_ms: 10_000,
            suspect_probe_ms: 60_000,
            outage_probe_ms: 1_000,
            outage_probe_cap_ms: 60_000,
            retry_after_cap_ms: 900_000,
            quota_probe_ms: 900_000,
        }
    }
}
