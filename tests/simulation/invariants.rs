//! What must hold after every step, and what must be true at the end.

use crate::provider::{Provider, Terms};
use crate::schedule::{Schedule, now};
use paceline_core::{Job, State};
use paceline_store::{Record, Store};

impl Schedule {
    fn job_of(&self, key: &str) -> (State, Job) {
        let stored = now(self.store.get(&self.class, key)).unwrap_or_else(|| panic!("{key} is lost"));
        let Record::Job(job) = stored.record else { panic!("{key}: {:?}", stored.record) };
        (stored.state.unwrap_or_else(|| panic!("{key} is in no state")), *job)
    }

    pub(crate) fn assert_always(&self) {
        let depths = now(self.store.depths(&self.class));
        let sum: u64 = depths.counts.iter().sum();
        assert_eq!(sum, self.pushed.len() as u64, "states sum to what was pushed: {depths:?}");
        for key in self.pushed.keys() {
            let (state, job) = self.job_of(key);
            self.assert_truth(key, state, &job);
        }
    }

    fn assert_truth(&self, key: &str, state: State, job: &Job) {
        let entry = self.provider.entry(key);
        let about = || format!("{key} is {state}: {entry:?} {job:?}");
        if !self.terms.may_double() {
            let approved = self.approved.get(key).copied().unwrap_or(0);
            assert!(entry.delivered <= 1 + approved, "doubled: {}", about());
        }
        match state {
            State::Submitted => assert!(entry.delivered > 0, "never delivered: {}", about()),
            State::Failed => assert!(entry.refused > 0, "filed as failed by timing: {}", about()),
            // With its claim a lost second took all that was known of the attempt.
            State::Expired | State::Cancelled if self.terms != Terms::LosesSeconds => {
                assert_eq!(entry.delivered, 0, "it went out: {}", about());
            }
            State::Unconfirmed => assert!(job.flags.ambiguous, "nobody doubts it: {}", about()),
            _ => {}
        }
        if state == State::Unconfirmed && self.policy.dedup_window_ms.is_none() {
            assert!(self.started.contains(key), "unconfirmed and never started: {}", about());
        }
        let spent = u64::from(job.counters.spent);
        assert!(spent <= entry.unlucky, "a throttle or a lapse was spent: {}", about());
        assert!(job.counters.lapses <= self.policy.max_lapses, "{}", about());
    }

    /// Nothing is wrong any more: what was delivered is known as such, or a person is asked.
    pub(crate) fn assert_at_rest(&self) {
        for key in self.pushed.keys() {
            let (state, job) = self.job_of(key);
            let entry = self.provider.entry(key);
            let about = || format!("{key} is {state}: {entry:?} {job:?}");
            let is_known = self.terms != Terms::LosesSeconds;
            if entry.delivered > 0 && entry.refused == 0 && is_known {
                let told = matches!(state, State::Submitted | State::Unconfirmed | State::Deferred);
                assert!(told, "delivered and not known: {}", about());
                assert!(state == State::Submitted || job.flags.ambiguous, "{}", about());
            }
            assert!(state != State::Submitted || !Provider::is_bad(key), "{}", about());
        }
    }
}
