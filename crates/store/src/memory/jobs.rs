//! The jobs of a class: one place per job, so that it is in one state by construction.

use super::card::{Card, Kept};
use crate::record::Record;
use paceline_core::{Job, State};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

#[derive(Debug, Clone, Default)]
pub(super) struct Jobs {
    places: BTreeMap<String, (State, u64)>,
    /// The same in the order of Redis's indexes: by state, score, then the bytes of the key.
    order: BTreeSet<(State, u64, String)>,
    depths: [u64; 9],
    records: BTreeMap<String, Kept>,
    pub(super) pending_since: BTreeMap<String, u64>,
    /// Per minute.
    pub(super) counts: BTreeMap<u64, BTreeMap<String, u64>>,
}

impl Jobs {
    pub(super) fn place(&self, key: &str) -> Option<(State, u64)> {
        self.places.get(key).copied()
    }

    pub(super) fn state_of(&self, key: &str) -> Option<State> {
        self.place(key).map(|(state, _)| state)
    }

    pub(super) fn depth(&self, state: State) -> u64 {
        self.depths[usize::from(state.number()) - 1]
    }

    /// Moves a job to a state, from wherever it is. The first entry into pending is remembered until it leaves
    /// for good; a claim is no leaving, and neither is a hand-back.
    pub(super) fn put(&mut self, key: &str, state: State, score: u64, now_ms: u64) {
        self.leave(key);
        self.places.insert(key.to_owned(), (state, score));
        self.order.insert((state, score, key.to_owned()));
        self.depths[usize::from(state.number()) - 1] += 1;
        match state {
            State::Queued | State::InFlight => {}
            State::Pending => {
                self.pending_since.entry(key.to_owned()).or_insert(now_ms);
            }
            _ => {
                self.pending_since.remove(key);
            }
        }
    }

    fn leave(&mut self, key: &str) {
        if let Some((state, score)) = self.places.remove(key) {
            self.order.remove(&(state, score, key.to_owned()));
            self.depths[usize::from(state.number()) - 1] -= 1;
        }
    }

    /// Forgets a job: its record and its place.
    pub(super) fn forget(&mut self, key: &str) {
        self.records.remove(key);
        self.leave(key);
    }

    pub(super) fn kept(&self, key: &str) -> Option<&Kept> {
        self.records.get(key)
    }

    pub(super) fn card(&self, key: &str) -> Option<&Card> {
        self.records.get(key).and_then(Kept::card)
    }

    pub(super) fn card_mut(&mut self, key: &str) -> Option<&mut Card> {
        self.records.get_mut(key).and_then(Kept::card_mut)
    }

    pub(super) fn record(&self, key: &str) -> Record {
        self.records.get(key).map_or(Record::Missing, Kept::record)
    }

    pub(super) fn write(&mut self, key: &str, card: Card) {
        self.records.insert(key.to_owned(), Kept::Card(Box::new(card)));
    }

    pub(super) fn plant(&mut self, key: &str, record: Record) {
        match record {
            Record::Missing => {
                self.records.remove(key);
            }
            Record::Job(job) => self.card_mut(key).into_iter().for_each(|card| card.job = Job::clone(&job)),
            odd => {
                self.records.insert(key.to_owned(), Kept::Odd(odd));
            }
        }
    }

    /// The entries of a state behind a score and key, in order.
    pub(super) fn behind(&self, state: State, score: u64, key: &str) -> impl Iterator<Item = (&str, u64)> {
        let from = Bound::Excluded((state, score, key.to_owned()));
        self.order
            .range((from, Bound::Unbounded))
            .take_while(move |(other, ..)| *other == state)
            .map(|(_, score, key)| (key.as_str(), *score))
    }

    /// The entries of a state, in order.
    pub(super) fn all(&self, state: State) -> impl Iterator<Item = (&str, u64)> {
        self.behind(state, 0, "")
    }

    /// The entries of a state whose score has come.
    pub(super) fn due(&self, state: State, now_ms: u64) -> impl Iterator<Item = (&str, u64)> {
        self.all(state).take_while(move |(_, score)| *score <= now_ms)
    }

    pub(super) fn due_keys(&self, state: State, now_ms: u64, max: usize) -> Vec<String> {
        self.due(state, now_ms).take(max).map(|(key, _)| key.to_owned()).collect()
    }

    pub(super) fn count(&mut self, now_ms: u64, code: &str, n: u64) {
        *self.counts.entry(now_ms / 60_000).or_default().entry(code.to_owned()).or_default() += n;
    }
}
