//! What scripts are told of a class's budgets, as one JSON text: names, shares, spans; never a policy.

use crate::keys::{BudgetRef, ClassRef, Keys};
use paceline_core::budget::{Limits, SHARING};
use paceline_core::policy::Trips;
use paceline_core::quota::{Quota, Span};
use serde_json::{Value, json};

/// A trailing window is counted in so many slots, and the one under way.
const SLOTS: u64 = 60;

/// What `claim.lua` and `explain.lua` decode.
pub(super) fn of_claim(class: &ClassRef, now_ms: u64) -> String {
    let budgets: Vec<Value> = class.budgets.iter().map(|budget| of_budget(budget, now_ms)).collect();
    json!({
        "class": class.class.as_str(),
        "reserve": { "ms": SHARING.reserve_ms, "least": SHARING.reserve_least, "wants_ms": SHARING.wants_ms },
        "retries": { "first": SHARING.credit_per_first, "most": SHARING.credit_most },
        "budgets": budgets,
    })
    .to_string()
}

/// What `settle.lua` decodes.
pub(super) fn of_settle(class: &ClassRef, trips: &Trips, now_ms: u64) -> String {
    let budgets: Vec<Value> =
        class.budgets.iter().map(|budget| json!({ "quotas": quotas(&budget.limits, now_ms) })).collect();
    json!({
        "budgets": budgets,
        "trips": {
            "refused_run": trips.refused_run,
            "terminal_run": trips.terminal_run,
            "failing_run": trips.failing_run,
            "recipient_run": trips.recipient_run,
            "recipient_window_ms": trips.recipient_window_ms,
            "suspect_ms": trips.suspect_probe_ms,
            "outage_ms": trips.outage_probe_ms,
        },
    })
    .to_string()
}

/// What `declare.lua` and `limit.lua` decode.
pub(super) fn of_limits(limits: &Limits) -> Value {
    let bounds = limits.bounds();
    json!({
        "rate_per_s": bounds.ceiling_per_s,
        "burst": bounds.ceiling_burst,
        "floor_per_s": bounds.floor_per_s,
        "first_per_s": bounds.first_per_s,
        "first_burst": bounds.first_burst,
        "adapts": limits.adapts,
        "max_in_flight": limits.max_in_flight,
    })
}

pub(super) fn quotas(limits: &Limits, now_ms: u64) -> Vec<Value> {
    limits.quotas.iter().map(|quota| of_quota(quota, now_ms)).collect()
}

fn of_budget(budget: &BudgetRef, now_ms: u64) -> Value {
    let spenders: Vec<Value> = budget
        .spenders
        .iter()
        .map(|spender| json!([spender.class.as_str(), spender.share, spender.shed_order]))
        .collect();
    json!({
        "spenders": spenders,
        "quotas": quotas(&budget.limits, now_ms),
        "leases": if budget.limits.max_in_flight == 0 { 0 } else { budget.spenders.len() },
    })
}

fn of_quota(quota: &Quota, now_ms: u64) -> Value {
    match quota.span(now_ms) {
        Span::Trailing { window_ms } => json!([quota.limit(), window_ms.div_ceil(SLOTS).max(1), SLOTS, 0, 0]),
        Span::Turning { began_ms, turns_ms } => {
            json!([quota.limit(), 1, 0, began_ms, turns_ms.saturating_sub(now_ms)])
        }
    }
}

/// The keys of a class's budgets, each followed by its quotas and, where `leases` says so, by the leases that count
/// against it.
pub(super) fn budget_keys(keys: &Keys, class: &ClassRef, leases: bool) -> Vec<String> {
    let mut all = Vec::new();
    for budget in &class.budgets {
        all.push(keys.budget(class, &budget.name));
        all.extend(budget.limits.quotas.iter().map(|quota| keys.quota(class, &budget.name, quota)));
        if leases && budget.limits.max_in_flight > 0 {
            all.extend(budget.spenders.iter().map(|spender| keys.in_flight_of(class, &spender.class)));
        }
    }
    all
}
