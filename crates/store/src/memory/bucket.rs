//! A budget at a moment, as claim spends from it: `part/budget.lua`, `part/share.lua`, `part/quota.lua`,
//! `part/spend.lua`.

use super::budget::Budget;
use crate::keys::{BudgetRef, Spender};
use paceline_core::Name;
use paceline_core::budget::SHARING;
use paceline_core::quota::Span;

/// A trailing window is counted in so many slots, and the one under way.
const SLOTS: u64 = 60;
/// What is missing within the rounding of a µs is not missing.
const ROUNDING: f64 = 0.000_001;

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub(super) rate_per_s: f64,
    pub(super) arrival_us: f64,
    pub(super) tokens: f64,
    pub(super) credit: f64,
    /// The most tokens this class ever sees, those that are set aside for others, and how fast the rest grows.
    full: f64,
    reserved: f64,
    growth_per_s: f64,
    pub(super) own: Option<Reserve>,
    pub(super) quotas: Vec<Allowance>,
    taken: f64,
}

/// One class's part of a shared bucket.
#[derive(Debug, Clone)]
pub(super) struct Reserve {
    class: Name,
    shed_order: u32,
    rate_per_s: f64,
    cap: f64,
    level: f64,
    wants_ms: f64,
    /// Above zero: others want what there is for so long, and this one gets no more than its reserve.
    shed_ms: f64,
}

/// What a quota leaves.
#[derive(Debug, Clone)]
pub(super) struct Allowance {
    label: String,
    slot: u64,
    limit: f64,
    pub(super) left: f64,
    pub(super) used: f64,
    pub(super) wait_ms: f64,
}

/// The slot that a moment counts in.
pub(super) fn slot_of(span: &Span, at_ms: u64) -> u64 {
    match span {
        Span::Trailing { window_ms } => at_ms / window_ms.div_ceil(SLOTS).max(1),
        Span::Turning { began_ms, .. } => *began_ms,
    }
}

impl Bucket {
    pub(super) fn read(budget: &Budget, at: &BudgetRef, class: &Name, now_ms: u64) -> Option<Self> {
        let pace = budget.pace?;
        let (rate_per_s, burst, now_us) = (pace.rate_per_s, pace.burst, now_ms as f64 * 1_000.0);
        // A hold releases at the pace, not with a burst: one token at its end, the others as they come.
        let until_ms = budget.hold.as_ref().and_then(|hold| hold.until_ms).unwrap_or(0);
        let ended_us = until_ms.max(budget.released_ms) as f64 * 1_000.0;
        let released_us = ended_us + (burst - 1.0) * 1_000_000.0 / rate_per_s;
        let arrival_us = budget.arrival_us.max(now_us).max(released_us);
        let mut bucket = Self {
            rate_per_s,
            arrival_us,
            tokens: burst - (arrival_us - now_us) * rate_per_s / 1_000_000.0,
            credit: budget.retry_credit,
            full: burst,
            reserved: 0.0,
            growth_per_s: rate_per_s,
            own: None,
            quotas: Allowance::all(budget, at, now_ms),
            taken: 0.0,
        };
        bucket.share(budget, &at.spenders, class, now_ms);
        Some(bucket)
    }

    fn share(&mut self, budget: &Budget, spenders: &[Spender], class: &Name, now_ms: u64) {
        if spenders.len() < 2 {
            return;
        }
        let cap = |spender: &Spender| {
            SHARING.reserve_least.max(SHARING.reserve_ms * spender.share * self.rate_per_s / 1_000.0)
        };
        let total: f64 = spenders.iter().map(cap).sum();
        let scale = (self.full / 2.0 / total).min(1.0);
        let is_whole = spenders.iter().all(|spender| cap(spender) * scale >= 1.0);
        let reserve = |spender: &Spender| {
            let (rate_per_s, cap) = (
                spender.share * self.rate_per_s,
                if is_whole { cap(spender) * scale } else { SHARING.reserve_least },
            );
            let full_us = budget.reserves_us.get(&spender.class).copied().unwrap_or(0.0);
            let missing = (full_us - now_ms as f64 * 1_000.0).max(0.0) * rate_per_s / 1_000_000.0;
            let wants_ms = budget.wants_ms.get(&spender.class).copied().unwrap_or(0) as f64 - now_ms as f64;
            let (class, shed_order) = (spender.class.clone(), spender.shed_order);
            Reserve { class, shed_order, rate_per_s, cap, level: cap - missing, wants_ms, shed_ms: 0.0 }
        };
        let mut reserves: Vec<Reserve> = spenders.iter().map(reserve).collect();
        if is_whole {
            fit_levels(&mut reserves, self.tokens);
        }
        let (mine, others): (Vec<_>, Vec<_>) =
            reserves.into_iter().partition(|reserve| reserve.class == *class);
        let Some(mut own) = mine.into_iter().next() else { return };
        for other in others {
            if is_whole {
                self.reserved += other.level.max(0.0);
                self.full -= other.cap;
                if other.level < other.cap {
                    self.growth_per_s -= other.rate_per_s;
                }
            }
            let owed = !is_whole && own.level < 1.0 && other.level >= 1.0;
            if other.wants_ms > 0.0 && (other.shed_order < own.shed_order || owed) {
                own.shed_ms = own.shed_ms.max(other.wants_ms);
            }
        }
        self.own = Some(own);
    }

    /// Until a job of that cost may go, and the term that binds. One dearer than the bucket goes when that is full and
    /// leaves it in debt, so it never blocks the head for ever.
    pub(super) fn wait_ms(&self, cost: f64) -> (f64, &'static str) {
        let ms = (cost.min(self.full) - self.tokens + self.reserved - ROUNDING) * 1_000.0 / self.growth_per_s;
        let Some(own) = self.own.as_ref().filter(|own| own.shed_ms > 0.0) else {
            return (ms.max(0.0), "rate");
        };
        let mine = ((cost.min(own.cap) - own.level - ROUNDING) * 1_000.0 / own.rate_per_s).min(own.shed_ms);
        if mine >= ms { (mine.max(0.0), "shed") } else { (ms.max(0.0), "rate") }
    }

    /// The tokens there are or will be within the lookahead.
    pub(super) fn affordable(&self, lookahead_ms: u64) -> f64 {
        let ahead_s = lookahead_ms as f64 / 1_000.0;
        let shared = self.tokens - self.reserved + self.growth_per_s * ahead_s;
        match self.own.as_ref().filter(|own| own.shed_ms > 0.0) {
            Some(own) => shared.min(own.level + own.rate_per_s * ahead_s),
            None => shared,
        }
    }

    pub(super) fn take(&mut self, cost: f64) {
        self.tokens -= cost;
        self.taken += cost;
        self.arrival_us += cost * 1_000_000.0 / self.rate_per_s;
        if let Some(own) = &mut self.own {
            own.level -= if own.shed_ms > 0.0 { cost } else { cost.min(own.level.max(0.0)) };
        }
        self.quotas.iter_mut().for_each(|quota| quota.left -= cost);
    }

    /// `write_spending`: `bound_ms` is for how long a due job waits for tokens of this budget, where it does.
    pub(super) fn write(&self, budget: &mut Budget, now_ms: u64, bound_ms: Option<f64>) {
        if bound_ms.is_some() {
            budget.heard.bound_at_ms = now_ms;
        }
        if let Some(own) = &self.own {
            let wants = bound_ms.map(|ms| (now_ms as f64 + ms + SHARING.wants_ms).round_ties_even() as u64);
            if wants.is_some() || own.wants_ms > 0.0 {
                budget.wants_ms.insert(own.class.clone(), wants.unwrap_or(0));
            }
        }
        if self.taken == 0.0 {
            return;
        }
        budget.arrival_us = self.arrival_us.round_ties_even();
        budget.heard.taken += self.taken as u64;
        for quota in &self.quotas {
            *budget.slots.entry(quota.label.clone()).or_default().entry(quota.slot).or_default() +=
                self.taken as i64;
        }
        if let Some(own) = &self.own {
            let full_us = now_ms as f64 * 1_000.0 + (own.cap - own.level) * 1_000_000.0 / own.rate_per_s;
            budget.reserves_us.insert(own.class.clone(), full_us.round_ties_even());
        }
    }
}

/// A bucket that is not full holds less than all reserves: each has its part of what there is.
fn fit_levels(reserves: &mut [Reserve], tokens: f64) {
    let total: f64 = reserves.iter().map(|reserve| reserve.level.max(0.0)).sum();
    let part = if total > tokens { tokens.max(0.0) / total } else { 1.0 };
    reserves.iter_mut().for_each(|reserve| reserve.level = reserve.level.min(reserve.level * part));
}

impl Allowance {
    pub(super) fn all(budget: &Budget, at: &BudgetRef, now_ms: u64) -> Vec<Self> {
        at.limits
            .quotas
            .iter()
            .map(|quota| {
                let (label, span) = (quota.label(), quota.span(now_ms));
                let slot = slot_of(&span, now_ms);
                let counted = budget.slots.get(&label).into_iter().flatten();
                let (first, limit) = match &span {
                    Span::Trailing { .. } => (slot.saturating_sub(SLOTS), quota.limit() as f64),
                    Span::Turning { .. } => (slot, quota.limit() as f64),
                };
                let inside: Vec<_> = counted.filter(|(slot, _)| **slot >= first).collect();
                let used = inside.iter().map(|(_, count)| **count).sum::<i64>() as f64;
                let oldest = inside.iter().find(|(_, count)| **count > 0).map_or(slot, |(slot, _)| **slot);
                let wait_ms = match &span {
                    Span::Trailing { window_ms } => {
                        ((oldest + SLOTS + 1) * window_ms.div_ceil(SLOTS).max(1)).saturating_sub(now_ms)
                    }
                    Span::Turning { turns_ms, .. } => turns_ms.saturating_sub(now_ms),
                };
                Self { label, slot, limit, left: limit - used, used, wait_ms: wait_ms as f64 }
            })
            .collect()
    }

    /// A job dearer than a whole quota goes while nothing of that quota is used.
    pub(super) fn fits(&self, cost: f64) -> bool {
        self.left >= cost.min(self.limit)
    }
}
