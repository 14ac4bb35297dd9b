//! What an answer promises about a job: what must be stored of it after the act.

use super::scene::{Expected, NOW, Score, shrink};
use paceline_core::history::History;
use paceline_core::job::{Counters, Flags};
use paceline_core::{Job, State};
use paceline_store::{Record, Settled, Settlement};
use std::collections::BTreeMap;

const IN_THE_ACT: Score = Score::Act { delay_ms: 0, not_before_ms: 0 };

impl Expected {
    pub(super) fn job(&mut self) -> &mut Job {
        match &mut self.record {
            Record::Job(job) => job,
            odd => panic!("{odd:?}"),
        }
    }

    pub(super) fn flags(&mut self) -> &mut Flags {
        &mut self.job().flags
    }

    /// It goes to a state in the act; its first entry into pending is remembered until it leaves for good.
    pub(super) fn moves(&mut self, state: State, delay_ms: u64) {
        self.state = state;
        self.score = if state.is_waiting() { Score::Act { delay_ms, not_before_ms: 0 } } else { IN_THE_ACT };
        match state {
            State::Queued | State::InFlight => {}
            State::Pending => {
                self.pending_since_ms.get_or_insert((0, 0));
            }
            _ => self.pending_since_ms = None,
        }
    }

    /// Over by expiry or cancel: unconfirmed, with everything, where an attempt may have been accepted.
    pub(super) fn is_over_without_settle(
        &mut self,
        why: &str,
        target: State,
        counts: &mut BTreeMap<String, u64>,
    ) {
        let target = if self.flags().ambiguous { State::Unconfirmed } else { target };
        self.moves(target, 0);
        if target != State::Unconfirmed {
            let last = self.job().history.last().cloned();
            shrink(self.job(), last);
        }
        *counts.entry(format!("|{why}|{target}")).or_default() += 1;
    }

    pub(super) fn is_settled(&mut self, end: &Settlement, word: Settled) {
        let history = History::parse(&end.history);
        match word {
            Settled::Moved(state) => {
                self.carries_out(end);
                if matches!(state, State::Submitted | State::Expired | State::Cancelled) {
                    shrink(self.job(), history.last().cloned());
                } else {
                    self.job().history = history;
                }
                self.moves(state, end.decision.delay_ms);
            }
            Settled::Late(_) => {
                let job = self.job();
                job.counters.attempts += 1;
                job.flags.late = true;
                job.sent_since_ms.get_or_insert(NOW);
                shrink(job, history.last().cloned());
                self.moves(State::Submitted, 0);
            }
            Settled::Twice => {
                history.last().cloned().into_iter().for_each(|one| self.job().history.push(one));
            }
            Settled::Parked => self.moves(State::Deferred, 0),
            Settled::Already | Settled::Stale | Settled::Gone | Settled::Held(_) => {}
        }
    }

    fn carries_out(&mut self, end: &Settlement) {
        let (job, decision) = (self.job(), &end.decision);
        job.counters = decision.counters;
        job.flags = Flags { cancel: false, ..decision.flags };
        if decision.starts_throttle {
            job.throttled_since_ms.get_or_insert(NOW);
        }
        if decision.starts_window {
            job.sent_since_ms.get_or_insert(NOW);
        }
    }

    pub(super) fn is_replayed(&mut self) {
        self.moves(State::Pending, 0);
        self.score = Score::Any;
        if let Record::Job(job) = &mut self.record {
            job.counters = Counters { attempts: job.counters.attempts, ..Counters::default() };
            job.throttled_since_ms = None;
            job.replays += 1;
            job.flags.cancel = false;
        }
    }
}
