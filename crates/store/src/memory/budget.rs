//! A budget as it is kept: `part/budget.lua`, `part/heard.lua`, `part/limits.lua`.

use super::hold::Standing;
use crate::movement::PaceDecision;
use paceline_core::Name;
use paceline_core::budget::Limits;
use paceline_core::pace::Heard;
use std::collections::BTreeMap;

/// What Redis keeps in the budget's hash, its quotas and its decisions.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget {
    /// `None`: not declared.
    pub(super) pace: Option<Pace>,
    pub(super) limits_by: String,
    pub(super) version: u64,
    pub(super) law: String,
    pub(super) decisions: Vec<PaceDecision>,
    pub(super) arrival_us: f64,
    /// When its last hold was lifted.
    pub(super) released_ms: u64,
    pub(super) hold: Option<Standing>,
    pub(super) refused_run: u64,
    pub(super) failing_run: u64,
    pub(super) recipients: Vec<String>,
    pub(super) recipients_since_ms: u64,
    pub(super) retry_credit: f64,
    /// Per class: when its reserve is full again, in µs, and until when it wants tokens, in ms.
    pub(super) reserves_us: BTreeMap<Name, f64>,
    pub(super) wants_ms: BTreeMap<Name, u64>,
    /// Per quota what was taken in each slot.
    pub(super) slots: BTreeMap<String, BTreeMap<u64, i64>>,
    pub(super) heard: Heard,
    pub(super) late_throttled: u64,
    /// What was claimed before says nothing about the pace since.
    pub(super) changed_ms: u64,
}

/// The ceiling as declared and what is in force under it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) ceiling_per_s: f64,
    pub(super) ceiling_burst: f64,
    pub(super) floor_per_s: f64,
    pub(super) max_in_flight: u32,
    pub(super) rate_per_s: f64,
    pub(super) burst: f64,
}

impl Budget {
    /// `write_limits`: a higher ceiling raises no pace that adapts.
    pub(super) fn write_limits(&mut self, limits: &Limits, now_us: f64) {
        let bounds = limits.bounds();
        let under = |pace: Option<f64>, new: f64, first: f64| match pace {
            None => first,
            Some(pace) if limits.adapts => pace.min(new),
            Some(_) => new,
        };
        let (ceiling_per_s, ceiling_burst) = (bounds.ceiling_per_s, bounds.ceiling_burst);
        let rate = self.pace.map(|pace| pace.rate_per_s);
        let burst = self.pace.map(|pace| pace.burst);
        self.reshape(
            under(rate, ceiling_per_s, bounds.first_per_s),
            under(burst, ceiling_burst, bounds.first_burst),
            now_us,
        );
        let pace = self.pace.get_or_insert(Pace {
            ceiling_per_s: 0.0,
            ceiling_burst: 0.0,
            floor_per_s: 0.0,
            max_in_flight: 0,
            rate_per_s: bounds.first_per_s,
            burst: bounds.first_burst,
        });
        if (pace.ceiling_per_s, pace.ceiling_burst) != (ceiling_per_s, ceiling_burst) {
            self.version += 1;
        }
        (pace.ceiling_per_s, pace.ceiling_burst) = (ceiling_per_s, ceiling_burst);
        (pace.floor_per_s, pace.max_in_flight) = (bounds.floor_per_s, limits.max_in_flight);
    }

    /// `reshape`: the tokens stay those there were.
    pub(super) fn reshape(&mut self, rate_per_s: f64, burst: f64, now_us: f64) {
        let Some(pace) = &mut self.pace else { return };
        let ahead = (self.arrival_us - now_us).max(0.0) * pace.rate_per_s / 1_000_000.0;
        let tokens = burst.min(pace.burst - ahead);
        self.arrival_us = (now_us + (burst - tokens) * 1_000_000.0 / rate_per_s).round_ties_even();
        (pace.rate_per_s, pace.burst) = (rate_per_s, burst);
    }

    /// `give_back`: tokens taken at `at_ms` and not used.
    pub(super) fn give_back(&mut self, limits: &Limits, cost: f64, at_ms: u64, now_us: f64) {
        let Some(pace) = self.pace else { return };
        self.arrival_us =
            (self.arrival_us.max(now_us) - cost * 1_000_000.0 / pace.rate_per_s).round_ties_even();
        self.heard.taken = self.heard.taken.saturating_sub(cost as u64);
        for quota in &limits.quotas {
            let slot = super::bucket::slot_of(&quota.span(at_ms), at_ms);
            *self.slots.entry(quota.label()).or_default().entry(slot).or_default() -= cost as i64;
        }
    }

    /// `hear_accepted`: in Redis the time is averaged over a batch first; here each counts by itself.
    pub(super) fn hear_accepted(&mut self, cost: f64, took_ms: u64) {
        let usual_ms = self.heard.answer_ms;
        self.heard.answer_ms = if self.heard.accepted == 0 { took_ms } else { (usual_ms * 7 + took_ms) / 8 };
        self.heard.accepted += cost as u64;
    }

    /// `hear_throttled`: a throttle of something claimed before the last cut says nothing about what was done since.
    pub(super) fn hear_throttled(&mut self, claimed_ms: u64) {
        let sum =
            if claimed_ms < self.changed_ms { &mut self.late_throttled } else { &mut self.heard.throttled };
        *sum += 1;
    }

    /// `begin_episode`
    pub(super) fn begin_episode(&mut self, now_ms: u64, claimed_ms: u64) {
        if claimed_ms >= self.changed_ms {
            self.heard.episodes += 1;
            (self.heard.episode_at_ms, self.changed_ms) = (now_ms, now_ms);
        }
    }

    /// `is_crowded`: so many recipients were throttled that the next such throttle is about the credential.
    pub(super) fn is_crowded(&mut self, key: &str, now_ms: u64, run: u8, window_ms: u64) -> bool {
        if now_ms - self.recipients_since_ms > window_ms {
            self.recipients.clear();
            self.recipients_since_ms = now_ms;
        }
        if self.recipients.len() >= usize::from(run) {
            return true;
        }
        if !self.recipients.iter().any(|known| known == key) {
            self.recipients.push(key.to_owned());
        }
        false
    }

    /// `lift_hold`: what was held goes on at the pace from here.
    pub(super) fn lift(&mut self, now_ms: u64) {
        if self.hold.take().is_some() {
            self.released_ms = now_ms;
        }
    }
}
