//! Applies the pace law: reads what the store counted for a budget, asks the pure function, and puts another pace in
//! force by compare-and-set. Any worker may do it; the first one wins, and the others find nothing left to do.

use crate::lane::Running;
use paceline_core::pace::{Bounds, Pace, adapt};
use paceline_store::{Adjustment, BudgetRef, BudgetState, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Often enough to raise a pace in small steps, seldom enough to cost next to nothing.
const BEAT: Duration = Duration::from_millis(200);

/// Looks at the budgets of a class while it is at work, and at once behind a throttle.
pub(crate) async fn run(running: Arc<Running>, stop: CancellationToken) {
    let budgets: Vec<&BudgetRef> =
        running.lane.at.budgets.iter().filter(|budget| budget.limits.adapts).collect();
    if budgets.is_empty() {
        return stop.cancelled().await;
    }
    loop {
        tokio::select! {
            () = running.at_work.notified() => {}
            () = stop.cancelled() => return,
        }
        for budget in &budgets {
            if let Err(error) = adapt_one(&running, budget).await {
                tracing::debug!(class = running.name(), budget = %budget.name, %error, "the pace was not looked at");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(BEAT) => {}
            () = running.throttled.notified() => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn adapt_one(running: &Running, budget: &BudgetRef) -> Result<(), StoreError> {
    let (store, at) = (&running.store, &running.lane.at);
    let state = store.pace(at, budget).await?;
    let bounds = bounds_of(budget, &state);
    let pace = pace_of(&state);
    let Some(change) = adapt(&bounds, &pace, &state.heard, state.now_ms) else { return Ok(()) };
    let adjustment = Adjustment {
        version: state.version,
        rate_per_s: change.pace.rate_per_s,
        burst: change.pace.burst,
        law: serde_json::to_string(&change.pace).expect("numbers become JSON"),
        cause: change.cause,
        is_cut: change.is_cut,
    };
    let is_applied = store.adjust(at, budget, &adjustment).await?;
    if let Some(cause) = adjustment.cause.filter(|_| is_applied) {
        tracing::info!(budget = %budget.name, pace_per_s = adjustment.rate_per_s, "{cause}");
    }
    Ok(())
}

/// The ceiling that is in force, which a person may have set.
fn bounds_of(budget: &BudgetRef, state: &BudgetState) -> Bounds {
    Bounds {
        ceiling_per_s: state.ceiling_per_s,
        ceiling_burst: state.ceiling_burst,
        floor_per_s: state.floor_per_s.min(state.ceiling_per_s),
        ..budget.limits.bounds()
    }
}

/// What the law remembers, at the pace that is in force. A memory that cannot be read is none.
fn pace_of(state: &BudgetState) -> Pace {
    let mut pace: Pace = serde_json::from_str(&state.law).unwrap_or_default();
    (pace.rate_per_s, pace.burst) = (state.pace_per_s, state.pace_burst);
    pace
}
