//! A budget as it stands, and how its pace is changed.

use super::Hold;
use paceline_core::pace::Heard;

/// A budget as it stands: `pace.lua`.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetState {
    /// Redis's clock.
    pub now_ms: u64,
    /// Rises with every change of limits or pace.
    pub version: u64,
    /// The ceiling in force: the configured one, or a person's.
    pub ceiling_per_s: f64,
    /// The most that may leave at once under that ceiling.
    pub ceiling_burst: f64,
    /// The pace never falls below.
    pub floor_per_s: f64,
    /// Who set the limits by hand; empty: they are the configuration's.
    pub limits_by: String,
    /// Leases that may stand at once; 0: no limit.
    pub max_in_flight: u64,
    /// The rate in force.
    pub pace_per_s: f64,
    /// The burst in force.
    pub pace_burst: f64,
    /// Tokens there are; below zero: in debt.
    pub tokens: f64,
    /// What the law remembers, as it wrote it; empty: nothing yet.
    pub law: String,
    /// What was counted since there is this budget.
    pub heard: Heard,
    /// Throttles of what was claimed before the last cut or hold.
    pub late_throttled: u64,
    /// Used of each quota, in the order of the limits.
    pub quotas_used: Vec<u64>,
    /// Its hold.
    pub hold: Option<Hold>,
}

/// Another pace for a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjustment {
    /// The version that was read; at another nothing is changed.
    pub version: u64,
    /// Tokens a second from now on.
    pub rate_per_s: f64,
    /// Tokens at once from now on.
    pub burst: f64,
    /// What the law remembers.
    pub law: String,
    /// Why, in words; `None`: nothing that people need to see.
    pub cause: Option<String>,
    /// What was claimed before says nothing about the pace from now on.
    pub is_cut: bool,
}

/// A change of a budget's pace, as it was kept.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PaceDecision {
    /// When, by Redis's clock.
    pub at_ms: u64,
    /// The rate before.
    pub from_per_s: f64,
    /// The rate after.
    pub to_per_s: f64,
    /// The burst after.
    pub burst: f64,
    /// Why, in words.
    pub cause: String,
}
