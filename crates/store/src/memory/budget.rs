//! A budget: `part/budget.lua`. A GCRA in µs: `arrival` is when the bucket will be full again.

use super::hold::Standing;
use paceline_core::budget::Limits;

#[derive(Debug, Default)]
pub(super) struct Budget {
    /// `None`: not declared.
    pub(super) limits: Option<Limits>,
    arrival_us: f64,
    pub(super) hold: Option<Standing>,
    pub(super) refused_run: u64,
    pub(super) failing_run: u64,
}

/// A budget at a moment.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    rate_per_s: f64,
    burst: f64,
    tokens: f64,
    arrival_us: f64,
}

impl Budget {
    pub(super) fn bucket(&self, now_us: f64) -> Option<Bucket> {
        let limits = self.limits?;
        let (rate_per_s, burst) = (limits.rate.per_s(), f64::from(limits.effective_burst()));
        // A hold releases at the pace, not with a burst: one token at its end, the others as they come.
        let ended_us =
            self.hold.as_ref().and_then(|hold| hold.until_ms).map_or(0.0, |ms| ms as f64 * 1_000.0);
        let released_us = ended_us + (burst - 1.0) * 1_000_000.0 / rate_per_s;
        let arrival_us = self.arrival_us.max(now_us).max(released_us);
        let tokens = burst - (arrival_us - now_us) * rate_per_s / 1_000_000.0;
        Some(Bucket { rate_per_s, burst, tokens, arrival_us })
    }

    pub(super) fn write(&mut self, bucket: &Bucket) {
        self.arrival_us = bucket.arrival_us.round_ties_even();
    }

    pub(super) fn give_back(&mut self, cost: f64, now_us: f64) {
        if let Some(mut bucket) = self.bucket(now_us) {
            bucket.take(-cost);
            self.write(&bucket);
        }
    }
}

impl Bucket {
    /// Until a job of that cost may go. One dearer than the burst goes when the bucket is full and leaves it in
    /// debt, so it never blocks the head for ever.
    pub(super) fn wait_ms(&self, cost: f64) -> f64 {
        ((cost.min(self.burst) - self.tokens) * 1_000.0 / self.rate_per_s).max(0.0)
    }

    pub(super) fn take(&mut self, cost: f64) {
        self.tokens -= cost;
        self.arrival_us += cost * 1_000_000.0 / self.rate_per_s;
    }
}
