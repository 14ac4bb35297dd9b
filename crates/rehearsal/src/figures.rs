//! What a rehearsal came to, from the provider's own ledger.

use crate::launch::Launch;
use crate::ledger::Ledger;
use serde::Serialize;
use std::collections::HashMap;

/// One sender's rehearsal.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests that reached the provider.
    pub attempts: u64,
    /// Of those it refused as too many.
    pub throttled_share: f64,
    /// Jobs filed as failed though the provider never said "not ever" to them.
    pub terminal_misfiled: u64,
    /// Jobs that the provider has.
    pub accepted: u64,
    /// Jobs that it does not have and that are nowhere else.
    pub lost: u64,
    /// Jobs still waiting when patience ended: it did not drain.
    pub left: u64,
    /// Messages delivered beyond the first of each job.
    pub duplicates: u64,
    /// Until the last job's first acceptance; until the end of patience where some are left.
    pub drain_s: f64,
    /// What a sender needs that knows everything.
    pub physical_s: f64,
    /// The one over the other.
    pub drain_ratio: f64,
    /// Times that the sender was told to wait and waited.
    pub holds: u64,
    /// Accepted, of what the provider would have taken until the drain.
    pub utilisation: f64,
    /// From push to first acceptance.
    pub transactional_p50_ms: f64,
    /// The same, of the slowest in a hundred.
    pub transactional_p99_ms: f64,
    /// The same, of those pushed while nothing was held or just released.
    pub transactional_p99_outside_holds_ms: f64,
}

/// What a sender says at the end, beside the ledger.
#[derive(Debug, Default)]
pub struct SenderEnd<'a> {
    /// When it began and was stopped, in µs since the epoch.
    pub began_us: u64,
    /// The same.
    pub ended_us: u64,
    /// Jobs pushed.
    pub pushed: u64,
    /// The keys of those filed as failed or dead.
    pub filed: &'a [String],
    /// Still waiting.
    pub left: u64,
    /// Times it was told to wait and waited.
    pub holds: u64,
    /// From when to when, in µs since the epoch, jobs waited for a hold or its release.
    pub held_us: Vec<(u64, u64)>,
    /// When each transactional job was pushed, in µs since the epoch.
    pub pushed_at_us: &'a [(String, u64)],
}

impl Figures {
    /// Of a launch, a ledger and what the sender says.
    pub fn of(launch: &Launch, ledger: &Ledger, end: &SenderEnd<'_>) -> Self {
        let mut jobs: HashMap<&str, Seen> = HashMap::new();
        for entry in &ledger.entries {
            let seen = jobs.entry(entry.payload_key.as_deref().unwrap_or(&entry.send_id)).or_default();
            seen.delivered += u64::from(entry.delivered);
            seen.refused_for_good |= entry.refused_for_good > 0;
            seen.first_us = [seen.first_us, entry.first_accepted_us].into_iter().flatten().min();
        }
        let accepted = jobs.values().filter(|seen| seen.first_us.is_some()).count() as u64;
        let of = |key: &String| jobs.get(key.as_str());
        let misfiled = end.filed.iter().filter(|key| of(key).is_none_or(|seen| !seen.refused_for_good));
        let filed_only = end.filed.iter().filter(|key| of(key).is_none_or(|seen| seen.first_us.is_none()));
        let last_us = match end.left {
            0 => jobs.values().filter_map(|seen| seen.first_us).max().unwrap_or(end.began_us),
            _ => end.ended_us,
        };
        let drain_s = last_us.saturating_sub(end.began_us) as f64 / 1e6;
        let physical_s = launch.physical_s();
        let (all, outside) = waits_ms(&jobs, end);
        let summary = ledger.summary;
        Self {
            attempts: summary.requests,
            throttled_share: round(summary.throttled as f64 / summary.requests.max(1) as f64, 5),
            terminal_misfiled: misfiled.count() as u64,
            accepted,
            lost: end.pushed.saturating_sub(accepted + filed_only.count() as u64 + end.left),
            left: end.left,
            duplicates: jobs.values().map(|seen| seen.delivered.saturating_sub(1)).sum(),
            drain_s: round(drain_s, 2),
            physical_s: round(physical_s, 2),
            drain_ratio: round(drain_s / physical_s.max(0.001), 3),
            holds: end.holds,
            utilisation: round(accepted as f64 / launch.allowed_by(drain_s), 3),
            transactional_p50_ms: quantile(&all, 0.5),
            transactional_p99_ms: quantile(&all, 0.99),
            transactional_p99_outside_holds_ms: quantile(&outside, 0.99),
        }
    }

    /// What must never happen.
    pub fn keeps_its_word(&self) -> bool {
        (self.lost, self.left, self.duplicates, self.terminal_misfiled) == (0, 0, 0, 0)
    }

    /// Number by number the median of several runs.
    pub fn median(runs: &[Self]) -> Self {
        let middle = |read: &dyn Fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(read).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let count = |read: fn(&Self) -> u64| middle(&|run: &Self| read(run) as f64) as u64;
        Self {
            attempts: count(|run| run.attempts),
            throttled_share: middle(&|run| run.throttled_share),
            terminal_misfiled: count(|run| run.terminal_misfiled),
            accepted: count(|run| run.accepted),
            lost: count(|run| run.lost),
            left: count(|run| run.left),
            duplicates: count(|run| run.duplicates),
            drain_s: middle(&|run| run.drain_s),
            physical_s: middle(&|run| run.physical_s),
            drain_ratio: middle(&|run| run.drain_ratio),
            holds: count(|run| run.holds),
            utilisation: middle(&|run| run.utilisation),
            transactional_p50_ms: middle(&|run| run.transactional_p50_ms),
            transactional_p99_ms: middle(&|run| run.transactional_p99_ms),
            transactional_p99_outside_holds_ms: middle(&|run| run.transactional_p99_outside_holds_ms),
        }
    }
}

#[derive(Default)]
struct Seen {
    delivered: u64,
    refused_for_good: bool,
    first_us: Option<u64>,
}

/// Sorted: of all transactional jobs, and of those that no hold delayed.
fn waits_ms(jobs: &HashMap<&str, Seen>, end: &SenderEnd<'_>) -> (Vec<f64>, Vec<f64>) {
    let (mut all, mut outside) = (Vec::new(), Vec::new());
    for (key, pushed_us) in end.pushed_at_us {
        let Some(first_us) = jobs.get(key.as_str()).and_then(|seen| seen.first_us) else { continue };
        let ms = round(first_us.saturating_sub(*pushed_us) as f64 / 1_000.0, 1);
        all.push(ms);
        let was_held = |(from, to): &(u64, u64)| *pushed_us < *to && first_us > *from;
        if !end.held_us.iter().any(was_held) {
            outside.push(ms);
        }
    }
    all.sort_by(f64::total_cmp);
    outside.sort_by(f64::total_cmp);
    (all, outside)
}

/// The value that a share of all does not exceed; 0 of nothing.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn round(value: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([quantile(&sorted, 0.5), quantile(&sorted, 0.99), quantile(&[], 0.5)], [50.0, 99.0, 0.0]);
    }

    #[test]
    fn what_was_held_is_told_apart_and_what_is_nowhere_is_lost() {
        let entry = |key: &str, delivered, first_us| crate::LedgerEntry {
            send_id: key.into(),
            credential: String::new(),
            payload_key: Some(key.into()),
            message_id: None,
            first_arrived_us: 0,
            last_arrived_us: 0,
            first_accepted_us: first_us,
            arrivals: 1,
            throttled: 0,
            refused: 0,
            refused_for_good: 0,
            delivered,
            repeats_deduplicated: 0,
            unanswered: 0,
        };
        let ledger = Ledger {
            summary: crate::LedgerSummary { requests: 4, throttled: 1, ..crate::LedgerSummary::default() },
            entries: vec![entry("a", 1, Some(2_000)), entry("b", 2, Some(9_000)), entry("c", 0, None)],
            timeline: Vec::new(),
        };
        let pushed_at_us = [("a".to_owned(), 1_000), ("b".to_owned(), 3_000)];
        let filed = ["c".to_owned(), "b".to_owned()];
        let end = SenderEnd {
            pushed: 4,
            filed: &filed,
            held_us: vec![(2_500, 8_000)],
            pushed_at_us: &pushed_at_us,
            ..SenderEnd::default()
        };
        let figures = Figures::of(&Launch::default(), &ledger, &end);
        assert_eq!((figures.accepted, figures.lost, figures.duplicates), (2, 1, 1));
        assert_eq!(
            (figures.terminal_misfiled, figures.throttled_share),
            (2, 0.25),
            "never told \"not ever\""
        );
        assert_eq!((figures.transactional_p99_ms, figures.transactional_p99_outside_holds_ms), (6.0, 1.0));
        assert!(!figures.keeps_its_word());
        let stuck = SenderEnd { pushed: 3, left: 1, ended_us: 60_000_000, ..SenderEnd::default() };
        let figures = Figures::of(&Launch::default(), &ledger, &stuck);
        assert_eq!(
            (figures.left, figures.drain_s, figures.keeps_its_word()),
            (1, 60.0, false),
            "it did not drain"
        );
    }
}
