//! What is known of the remote side's limit, and how stretches of sending measure it.

use super::{Law, Pace, rate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the remote side allows, as far as we know.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Limit {
    pub(super) per_s: f64,
    pub(super) burst: f64,
    /// Else it is a guess, or less than what it is.
    pub(super) is_measured: bool,
}

/// A stretch of sending that ended in a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) seconds: f64,
    pub(super) accepted: f64,
    /// How long the sender was silent before it; 0: the provider's bucket was full, as far as we know.
    pub(super) silent_s: f64,
    /// The rate it began at; it only grew.
    pub(super) slowest_per_s: f64,
}

/// Just under a limit: the provider's clock and ours never agree to the last per cent.
pub(super) const MARGIN: f64 = 0.99;
/// Of a measured burst: the first burst compresses on the wire.
const BURST_MARGIN: f64 = 0.8;
/// No cut is deeper, whatever was measured, because one odd moment must not lead to the floor; and none shallower.
const DEEPEST: f64 = 0.3;
const SHALLOWEST: f64 = 0.98;
/// A measurement above this part of the refused pace is none: the limit has just moved.
const PLAUSIBLE: f64 = 1.02;
/// Stretches measure the limit only if they differ by so much in length, and by so many tokens.
const DIFFERENT_S: f64 = 0.3;
const DIFFERENT_TOKENS: f64 = 10.0;

impl Law<'_> {
    /// A bucket accepts `burst + limit × time` in a stretch that begins when it is full: two stretches give both.
    pub(super) fn fit(&self, pace: &Pace) -> Option<Limit> {
        let (one, other) = (pace.before?, pace.last?);
        let seconds = other.seconds - one.seconds;
        if seconds.abs() < DIFFERENT_S.max(DIFFERENT_TOKENS / pace.refused_per_s) {
            return None;
        }
        let mut per_s = (other.accepted - one.accepted) / seconds;
        // What the bucket gained in a silence is at most what the limit gives: no limit is below that, and it is just
        // that where the silence was too short to fill the bucket.
        if other.silent_s > 0.0 {
            let least_per_s = other.accepted / (other.seconds + other.silent_s);
            let burst = one.accepted - per_s * one.seconds;
            per_s = if burst > per_s * other.silent_s { least_per_s } else { per_s.max(least_per_s) };
        }
        let burst =
            if other.silent_s > 0.0 && one.silent_s == 0.0 { one.burst(per_s) } else { other.burst(per_s) };
        let is_plausible = per_s > 0.0
            && per_s <= pace.refused_per_s * PLAUSIBLE
            && (0.0..=2.0 * self.bounds.ceiling_burst).contains(&burst);
        // Where a stretch kept to a rate after a hold and survived that, the bucket ran over: the limit is more.
        let is_measured = other.silent_s == 0.0 || pace.refused_per_s <= PLAUSIBLE * other.slowest_per_s;
        is_plausible.then_some(Limit { per_s, burst, is_measured })
    }
}

impl Stretch {
    pub(super) fn burst(&self, per_s: f64) -> f64 {
        self.accepted - per_s * self.seconds
    }
}

impl Pace {
    /// Just under a limit.
    pub(super) fn keep(&mut self, limit: Limit) {
        let per_s = limit.per_s.clamp(self.refused_per_s * DEEPEST, self.refused_per_s * SHALLOWEST / MARGIN);
        self.limit = Some(Limit { per_s, ..limit });
        self.rate_per_s = per_s * MARGIN;
        self.burst = (limit.burst * BURST_MARGIN).max(1.0);
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.is_measured { "" } else { "about " };
        write!(f, "a limit of {about}{}/s, burst {:.0}", rate(self.per_s), self.burst)
    }
}
