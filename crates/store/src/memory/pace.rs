//! What the law and operators ask of a budget: `pace.lua`, `adjust.lua`, `limit.lua`, `explain.lua`.

use super::bucket::Allowance;
use super::claim::wait_of;
use super::world::World;
use crate::error::StoreError;
use crate::keys::{BudgetRef, ClassRef};
use crate::movement::*;
use paceline_core::budget::Limits;

/// Decisions that are kept of a budget.
const KEPT: usize = 1_000;

impl World {
    pub(super) fn pace(&mut self, class: &ClassRef, at: &BudgetRef) -> Result<BudgetState> {
        let now_ms = self.now_ms;
        let bucket = super::bucket::Bucket::read(self.budget(class, &at.name), at, &class.class, now_ms);
        let budget = self.budget(class, &at.name);
        let (Some(bucket), Some(pace)) = (bucket, budget.pace) else { return Err(StoreError::Undeclared) };
        let mut heard = budget.heard;
        heard.hold_until_ms = budget.hold.as_ref().and_then(|hold| hold.until_ms).unwrap_or(0);
        Ok(BudgetState {
            now_ms,
            version: budget.version,
            ceiling_per_s: pace.ceiling_per_s,
            ceiling_burst: pace.ceiling_burst,
            floor_per_s: pace.floor_per_s,
            limits_by: budget.limits_by.clone(),
            max_in_flight: u64::from(pace.max_in_flight),
            pace_per_s: pace.rate_per_s,
            pace_burst: pace.burst,
            tokens: bucket.tokens,
            law: budget.law.clone(),
            heard,
            late_throttled: budget.late_throttled,
            quotas_used: Allowance::all(budget, at, now_ms).iter().map(|quota| quota.used as u64).collect(),
            hold: super::look::shown(budget.hold.as_ref(), now_ms),
        })
    }

    pub(super) fn adjust(&mut self, class: &ClassRef, at: &BudgetRef, adjustment: &Adjustment) -> bool {
        let (now_ms, now_us) = (self.now_ms, self.now_us());
        let budget = self.budget(class, &at.name);
        let Some(pace) = budget.pace.filter(|_| budget.version == adjustment.version) else { return false };
        budget.reshape(adjustment.rate_per_s, adjustment.burst, now_us);
        budget.version += 1;
        budget.law.clone_from(&adjustment.law);
        if adjustment.is_cut {
            budget.changed_ms = now_ms;
        }
        if let Some(cause) = &adjustment.cause {
            budget.decisions.push(PaceDecision {
                at_ms: now_ms,
                from_per_s: pace.rate_per_s,
                to_per_s: adjustment.rate_per_s,
                burst: adjustment.burst,
                cause: cause.clone(),
            });
        }
        true
    }

    pub(super) fn limit(
        &mut self,
        class: &ClassRef,
        at: &BudgetRef,
        limits: &Limits,
        by: Option<&str>,
    ) -> Result<()> {
        let (now_ms, now_us) = (self.now_ms, self.now_us());
        let budget = self.budget(class, &at.name);
        let Some(before) = budget.pace else { return Err(StoreError::Undeclared) };
        budget.write_limits(limits, now_us);
        budget.limits_by = by.unwrap_or_default().to_owned();
        let (bounds, after) = (limits.bounds(), budget.pace.unwrap_or(before));
        budget.decisions.push(PaceDecision {
            at_ms: now_ms,
            from_per_s: before.rate_per_s,
            to_per_s: after.rate_per_s,
            burst: after.burst,
            cause: format!(
                "limits set to {}/s, burst {} by {}",
                bounds.ceiling_per_s,
                bounds.ceiling_burst,
                by.unwrap_or("the configuration")
            ),
        });
        Ok(())
    }

    pub(super) fn decisions(&mut self, class: &ClassRef, at: &BudgetRef, max: usize) -> Vec<PaceDecision> {
        self.budget(class, &at.name).decisions.iter().rev().take(max.min(KEPT)).cloned().collect()
    }

    pub(super) fn explain(&mut self, class: &ClassRef, key: Option<&str>) -> Result<Option<Explained>> {
        let buckets = self.buckets(class).ok_or(StoreError::Undeclared)?;
        let (now_ms, (_, full)) = (self.now_ms, self.room(class, &buckets));
        let shut = self.silence(class).or(full);
        let jobs = &self.line(class).jobs;
        let place = key.and_then(|key| jobs.place(key));
        if key.is_some() && place.is_none() {
            return Ok(None);
        }
        let rank = place
            .zip(key)
            .map(|((state, _), key)| jobs.all(state).take_while(|(other, _)| *other != key).count() as u64);
        let cost = key.and_then(|key| jobs.card(key)).map_or(1.0, |card| f64::from(card.job.cost));
        let (wait_ms, term) = match shut {
            Some(Claim::Wait { ms, term }) => (ms, term),
            _ => {
                let (ms, term, _) = wait_of(&buckets, cost);
                (Some(ms.ceil() as u64), if ms > 0.0 { term.to_owned() } else { String::new() })
            }
        };
        Ok(Some(Explained {
            now_ms,
            wait_ms,
            term,
            next_due_ms: self.next_due(class),
            state: place.map(|(state, _)| state),
            score_ms: place.map_or(0, |(_, score_ms)| score_ms),
            rank,
        }))
    }
}
