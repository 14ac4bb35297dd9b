//! `replay.lua`, `confirm.lua`

use super::card::last_attempt;
use super::world::World;
use crate::keys::ClassRef;
use crate::movement::*;
use paceline_core::State;
use paceline_core::job::{Counters, Job};

impl World {
    pub(super) fn replay(
        &mut self,
        class: &ClassRef,
        pace: ReplayPace,
        jobs: &[(String, State)],
    ) -> Vec<Replayed> {
        let now_ms = self.now_ms;
        let line = self.line(class);
        let (mut slot_ms, mut replayed) = (line.replay_slot_ms.max(now_ms as f64), 0);
        let mut words = Vec::new();
        for (key, state) in jobs {
            let leaves = matches!(state, State::Failed | State::Deferred | State::Unconfirmed);
            let found = line.jobs.state_of(key);
            words.push(if !leaves || found != Some(*state) {
                Replayed::Moved(found)
            } else if line.jobs.kept(key).is_none_or(|kept| kept.card().is_some_and(|card| card.is_receipt)) {
                Replayed::Missing
            } else {
                if let Some(card) = line.jobs.card_mut(key) {
                    renew(&mut card.job);
                }
                line.jobs.put(key, State::Pending, slot_ms.floor() as u64, now_ms);
                (slot_ms, replayed) = (slot_ms + pace.interval_ms, replayed + 1);
                Replayed::Replayed
            });
        }
        if replayed > 0 {
            line.replay_slot_ms = slot_ms.round_ties_even();
            line.jobs.count(now_ms, "|replayed|pending", replayed);
        }
        words
    }
}

impl World {
    pub(super) fn confirm(&mut self, class: &ClassRef, jobs: &[Confirmation]) -> Vec<Confirmed> {
        let now_ms = self.now_ms;
        let kept = &mut self.line(class).jobs;
        let one = |job: &Confirmation| {
            let (Some(state), Some(card)) = (kept.state_of(&job.key), kept.card_mut(&job.key)) else {
                return Confirmed::Missing;
            };
            let is_open = matches!(state, State::Failed | State::Deferred | State::Unconfirmed);
            if !is_open || !job.accepted && card.is_receipt {
                return Confirmed::Moved(state);
            }
            card.job.flags.ambiguous = false;
            card.job.flags.cancel = false;
            let target = if job.accepted { State::Submitted } else { State::Pending };
            if job.accepted {
                card.shrink(last_attempt(&job.line));
            } else {
                renew(&mut card.job);
                card.job.sent_since_ms = None;
                last_attempt(&job.line).into_iter().for_each(|attempt| card.job.history.push(attempt));
            }
            kept.put(&job.key, target, now_ms, now_ms);
            kept.count(now_ms, &format!("|confirmed|{target}"), 1);
            Confirmed::Confirmed(target)
        };
        jobs.iter().map(one).collect()
    }
}

/// Counters to zero; history, attempts and what the send id is made of stay.
fn renew(job: &mut Job) {
    job.counters = Counters { attempts: job.counters.attempts, ..Counters::default() };
    job.throttled_since_ms = None;
    job.replays = job.replays.saturating_add(1);
    job.flags.cancel = false;
}
