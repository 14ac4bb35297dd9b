//! The field of providers that the law must find its way with.

use crate::provider::Provider;
use crate::simulation::{Load, Run, guessed, run};

/// One provider of the field; the ceiling is three times too high for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) limit: f64,
    pub(crate) burst: f64,
    pub(crate) latency_ms: u64,
    pub(crate) retry_after_s: Option<u64>,
    pub(crate) refusals_count: bool,
    pub(crate) workers: u64,
}

/// Limits from 1 to 5,000 a second, small and large bursts, short and long ways, with and without a named wait,
/// refusals that count and that do not, one worker to fifty.
pub(crate) fn field(limits: &[f64], latencies_ms: &[u64]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for &limit in limits {
        for burst in [1.0, limit * 0.1, limit * 0.5, limit * 2.0] {
            // A burst below what the limit lets through in some ms is no bucket but a race.
            let burst = burst.max(1.0).max(limit / 200.0);
            for &latency_ms in latencies_ms {
                for (retry_after_s, refusals_count) in
                    [(Some(1), false), (None, false), (Some(1), true), (None, true)]
                {
                    let workers = [1, 10, 50][entries.len() % 3];
                    entries.push(Entry { limit, burst, latency_ms, retry_after_s, refusals_count, workers });
                }
            }
        }
    }
    entries
}

impl Entry {
    /// Long enough that half of it is 1,000 tokens, a minute and thirty answers: to find is allowed that much.
    pub(crate) fn run(&self) -> (Run, Vec<(u64, String)>) {
        let seconds = (2_000.0 / self.limit).max(120.0).max(self.latency_ms as f64 * 0.06);
        let provider = Provider {
            retry_after_s: self.retry_after_s,
            refusals_count: self.refusals_count,
            latency_ms: self.latency_ms,
            ..Provider::new(self.limit, self.burst)
        };
        let load = Load {
            workers: self.workers,
            ..Load::new((self.limit * seconds) as u64, 0, (seconds * 2_000.0) as u64)
        };
        run(provider, guessed(self.limit * 3.0, self.burst * 3.0), load)
    }

    pub(crate) fn family(&self) -> (&'static str, &'static str, u64) {
        let named = if self.retry_after_s.is_some() { "named" } else { "unnamed" };
        (named, if self.refusals_count { "counts" } else { "does not count" }, self.latency_ms)
    }
}

/// In the second half of its run: nearly all of what the limit allows, and hardly a refusal.
pub(crate) fn is_met(run: &Run) -> bool {
    run.utilisation >= 0.95 && run.late_share <= 0.01
}
