//! What only reads: `get.lua`, `depths.lua`, `list.lua`; and `reconcile.lua`.

use super::card::{Card, Kept};
use super::hold::Standing;
use super::world::World;
use crate::keys::ClassRef;
use crate::movement::*;
use crate::reconcile::{Reconcile, Reconciled};
use crate::record::Record;
use paceline_core::State;

impl World {
    pub(super) fn get(&mut self, class: &ClassRef, key: &str) -> Option<Stored> {
        let now_ms = self.now_ms;
        let jobs = &self.line(class).jobs;
        let place = jobs.place(key);
        if place.is_none() && jobs.kept(key).is_none() {
            return None;
        }
        let (state, score_ms) = (place.map(|(state, _)| state), place.map_or(0, |(_, score)| score));
        Some(Stored { now_ms, state, score_ms, record: jobs.record(key) })
    }

    pub(super) fn depths(&mut self, class: &ClassRef) -> Depths {
        let now_ms = self.now_ms;
        let holds = self.holds(class).map(|hold| shown(hold, now_ms)).collect();
        let jobs = &self.line(class).jobs;
        let due = jobs.due(State::Queued, now_ms).count() as u64;
        let age = |since_ms: u64| now_ms.checked_sub(since_ms);
        let oldest = |state| jobs.all(state).next().and_then(|(_, at_ms)| age(at_ms));
        Depths {
            now_ms,
            counts: State::ALL.map(|state| jobs.depth(state)),
            scheduled: jobs.depth(State::Queued) - due,
            oldest_due_ms: oldest(State::Queued).max(oldest(State::Pending)),
            oldest_pending_ms: jobs.pending_since.values().min().copied().and_then(age),
            holds,
        }
    }

    /// A job here is in one state by construction; what can be wrong is that its record is missing.
    pub(super) fn reconcile(&mut self, class: &ClassRef, jobs: &[Reconcile]) -> Vec<Reconciled> {
        let now_ms = self.now_ms;
        let kept = &mut self.line(class).jobs;
        let one = |job: &Reconcile| {
            let (state, record) = (kept.state_of(&job.key), kept.record(&job.key));
            let seen = format!("{state:?} {record:?}").into_bytes();
            match &job.mend {
                None => {
                    let is_receipt = kept.card(&job.key).is_some_and(|card| card.is_receipt);
                    Reconciled::Seen { states: state.into_iter().collect(), seen, record, is_receipt }
                }
                Some((then, _)) if *then != seen => Reconciled::Changed,
                Some((_, Some(target))) => {
                    kept.put(&job.key, *target, now_ms, now_ms);
                    Reconciled::Mended
                }
                Some((_, None)) => {
                    kept.forget(&job.key);
                    Reconciled::Mended
                }
            }
        };
        jobs.iter().map(one).collect()
    }

    pub(super) fn list(
        &mut self,
        class: &ClassRef,
        state: State,
        after: &Cursor,
        max_jobs: usize,
    ) -> Vec<Listed> {
        let jobs = &self.line(class).jobs;
        let entry = |(key, score_ms): (&str, u64)| Listed {
            key: key.to_owned(),
            score_ms,
            record: match jobs.kept(key) {
                Some(Kept::Card(card)) => Card::packed(card),
                Some(Kept::Odd(record)) => record.clone(),
                None => Record::Missing,
            },
        };
        jobs.behind(state, after.score_ms, &after.key).take(max_jobs).map(entry).collect()
    }
}

/// A hold that has ended and does not probe is no hold.
pub(super) fn shown(hold: Option<&Standing>, now_ms: u64) -> Option<Hold> {
    hold.filter(|hold| hold.is_in_force(now_ms)).map(|hold| Hold {
        cause: hold.cause,
        until_ms: hold.until_ms,
        by: hold.by.clone(),
    })
}
