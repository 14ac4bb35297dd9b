//! What takes jobs away: `cancel.lua`, `doubt.lua`, `erase.lua`, `sweep.lua`.

use super::world::World;
use crate::keys::ClassRef;
use crate::movement::*;
use paceline_core::State;

impl World {
    pub(super) fn cancel(&mut self, class: &ClassRef, keys: &[String]) -> Vec<Cancelled> {
        keys.iter().map(|key| self.cancel_one(class, key)).collect()
    }

    fn cancel_one(&mut self, class: &ClassRef, key: &str) -> Cancelled {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        let (Some(state), Some(card)) = (jobs.state_of(key), jobs.card_mut(key)) else {
            return Cancelled::Missing;
        };
        if state == State::InFlight {
            card.job.flags.cancel = true;
            return Cancelled::Marked;
        }
        if !state.is_waiting() {
            return Cancelled::Over(state);
        }
        let target = if card.job.flags.ambiguous { State::Unconfirmed } else { State::Cancelled };
        if target == State::Cancelled {
            card.shrink_to_last();
        }
        jobs.put(key, target, now_ms, now_ms);
        jobs.count(now_ms, &format!("|cancelled|{target}"), 1);
        Cancelled::Cancelled(target)
    }

    pub(super) fn erase(&mut self, class: &ClassRef, key: &str) -> Erased {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        let Some(state) = jobs.state_of(key) else { return Erased::Missing };
        if state == State::InFlight && jobs.kept(key).is_none_or(|kept| kept.card().is_some()) {
            return Erased::InFlight;
        }
        if jobs.kept(key).is_none() {
            jobs.forget(key);
            return Erased::Erased(state);
        }
        let Some(card) = jobs.card_mut(key) else { return Erased::Missing };
        card.shrink(None);
        if !state.is_waiting() && !state.is_dead_letter() {
            return Erased::Erased(state);
        }
        jobs.put(key, State::Cancelled, now_ms, now_ms);
        Erased::Erased(State::Cancelled)
    }

    pub(super) fn doubt(&mut self, class: &ClassRef, jobs: &[HeldJob]) -> Vec<Doubted> {
        let now_ms = self.now_ms;
        let kept = &mut self.line(class).jobs;
        let one = |(key, birth, deadline_ms): &HeldJob| {
            let place = kept.place(key);
            let Some(card) = kept.card_mut(key).filter(|card| card.job.birth == *birth) else {
                return Doubted::Elsewhere;
            };
            match place {
                Some((State::InFlight, lease_ms)) if lease_ms == *deadline_ms => Doubted::Held,
                Some((state, _)) if state.is_waiting() && card.last_settled_ms < *deadline_ms => {
                    card.job.flags.started = false;
                    card.job.flags.ambiguous = true;
                    kept.put(key, State::Unconfirmed, now_ms, now_ms);
                    kept.count(now_ms, "|doubted|unconfirmed", 1);
                    Doubted::Doubted
                }
                _ => Doubted::Elsewhere,
            }
        };
        jobs.iter().map(one).collect()
    }

    pub(super) fn sweep(
        &mut self,
        class: &ClassRef,
        state: State,
        older_than_ms: u64,
        max_jobs: usize,
    ) -> usize {
        if !state.is_done() {
            return 0;
        }
        let before_ms = self.now_ms.saturating_sub(older_than_ms);
        let jobs = &mut self.line(class).jobs;
        let keys = jobs.due_keys(state, before_ms, max_jobs);
        keys.iter().for_each(|key| jobs.forget(key));
        keys.len()
    }
}
