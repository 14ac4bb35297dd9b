//! The table at the end. What was delivered comes from the provider's ledger, where jobs are from Redis.

use super::launch::{Launched, class_of, number};
use crate::print;
use paceline_rehearsal::Ledger;
use paceline_rehearsal::figures::quantile;
use serde::Serialize;
use std::time::Duration;

/// One number per key, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Jobs pushed.
    pushed: u64,
    /// Requests that reached the provider.
    attempts: u64,
    /// Requests it refused as too many.
    throttled: u64,
    submitted: u64,
    failed: u64,
    deferred: u64,
    unconfirmed: u64,
    /// Jobs pushed that the provider does not have and that are nowhere in the queue either.
    lost: u64,
    /// Messages that the provider delivered a second time.
    duplicates: u64,
    /// Repeats that it recognised by their send id.
    repeats_deduplicated: u64,
    /// Requests it accepted without an answer.
    unanswered: u64,
    /// From the beginning of the push to the first acceptance.
    transactional_p50_ms: f64,
    transactional_p99_ms: f64,
    elapsed_s: f64,
}

impl Report {
    pub(super) fn of(launched: &Launched, ledger: &Ledger, elapsed: Duration) -> Self {
        let sum = |field: &str| launched.queues.iter().map(|queue| number(queue, field)).sum::<u64>();
        let pushed = launched.pushed.values().sum();
        let held = ["waiting", "in_flight", "failed", "deferred", "unconfirmed", "expired", "cancelled"];
        let elsewhere: u64 = held.iter().map(|field| sum(field)).sum();
        let mut waits = waits_ms(launched, ledger);
        waits.sort_by(f64::total_cmp);
        Self {
            pushed,
            attempts: ledger.summary.requests,
            throttled: ledger.summary.throttled,
            submitted: sum("submitted"),
            failed: sum("failed"),
            deferred: sum("deferred"),
            unconfirmed: sum("unconfirmed"),
            lost: pushed.saturating_sub(ledger.summary.accepted + elsewhere),
            duplicates: ledger.summary.duplicates,
            repeats_deduplicated: ledger.summary.repeats_deduplicated,
            unanswered: ledger.summary.unanswered,
            transactional_p50_ms: quantile(&waits, 0.50),
            transactional_p99_ms: quantile(&waits, 0.99),
            elapsed_s: (elapsed.as_secs_f64() * 10.0).round() / 10.0,
        }
    }

    /// What the demo is there to show.
    pub(super) fn holds(&self) -> bool {
        self.lost == 0 && self.duplicates == 0 && self.throttled >= 1
    }

    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return print::json(self);
        }
        let told = [
            ("pushed", self.pushed.to_string(), "jobs of three classes"),
            ("attempts", self.attempts.to_string(), "requests at the provider"),
            ("throttled", self.throttled.to_string(), "answered 429: \"not right now\", nothing spent"),
            ("submitted", self.submitted.to_string(), "accepted by the provider"),
            ("failed", self.failed.to_string(), "not ever; none of them because of timing"),
            ("deferred", self.deferred.to_string(), "dead letters: attempts spent"),
            ("unconfirmed", self.unconfirmed.to_string(), "dead letters: nobody can tell"),
            ("lost", self.lost.to_string(), "pushed and nowhere: must be 0"),
            ("duplicates", self.duplicates.to_string(), "messages delivered twice: must be 0"),
            (
                "repeats deduplicated",
                self.repeats_deduplicated.to_string(),
                "repeats the provider recognised by their send id",
            ),
            ("unanswered", self.unanswered.to_string(), "accepted by the provider without an answer"),
            ("transactional p50", format!("{:.1} ms", self.transactional_p50_ms), "push to first acceptance"),
            ("transactional p99", format!("{:.1} ms", self.transactional_p99_ms), ""),
            ("elapsed", format!("{:.1} s", self.elapsed_s), ""),
        ];
        let rows =
            told.into_iter().map(|(name, value, note)| vec![name.into(), value, note.into()]).collect();
        print::table(&["", "", ""], rows);
        Ok(())
    }
}

/// How long each transactional job took, from the provider's own record of its first acceptance.
fn waits_ms(launched: &Launched, ledger: &Ledger) -> Vec<f64> {
    let arrived = ledger.entries.iter().filter_map(|entry| {
        let pushed_us = launched.pushed_at_us.get(entry.payload_key.as_ref()?)?;
        Some(entry.first_accepted_us?.saturating_sub(*pushed_us) as f64 / 1000.0)
    });
    debug_assert!(launched.queues.iter().all(|queue| !class_of(queue).is_empty()));
    arrived.map(|ms| (ms * 10.0).round() / 10.0).collect()
}
