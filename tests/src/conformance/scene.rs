//! A scene: a class of its own, and what must be stored of it after every act.

use super::bench::Bench;
use super::picture::{Moment, Picture, assert_same};
use crate::store;
use paceline_core::decide::HoldCause;
use paceline_core::history::{Attempt, History};
use paceline_core::policy::Trips;
use paceline_core::{Job, State};
use paceline_store::{ClassRef, Hold, Listed, Record, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};

/// In an expected job: at the time of the act. What it really is, is learnt from the first look that finds it
/// between the clock before the act and the clock after it.
pub(super) const NOW: u64 = 1;
/// Longer than any scenario.
pub const HOUR_MS: u64 = 3_600_000;

/// A class of its own in a group of its own, with limits that never bind. Groups differ, so tags spread.
pub fn fresh_class() -> ClassRef {
    store::class(&fresh_name())
}

/// A name that no other scenario has.
pub fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("c{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What a test expects of a score.
#[derive(Debug, Clone, Copy)]
pub(super) enum Score {
    At(u64),
    /// This long after the act, but not before that moment.
    Act {
        delay_ms: u64,
        not_before_ms: u64,
    },
    /// The test looks at it itself.
    Any,
}

/// What a test expects of a job.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) state: State,
    pub(super) score: Score,
    pub(super) record: Record,
    /// Its first entry into pending lay between these; `(0, 0)`: in the act.
    pub(super) pending_since_ms: Option<(u64, u64)>,
}

/// What a test expects of a hold.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) cause: HoldCause,
    pub(super) until: Option<Score>,
    pub(super) probes: bool,
    pub(super) by: String,
}

/// The stage of one test.
pub struct Scene<'a, B> {
    /// The store and its surroundings.
    pub bench: &'a B,
    /// The class; a test may change its limits and declare it again.
    pub class: ClassRef,
    /// Where runs of bad ends put holds.
    pub trips: Trips,
    pub(super) jobs: BTreeMap<String, Expected>,
    pub(super) gone: BTreeSet<String>,
    pub(super) holds: Vec<Option<Standing>>,
    pub(super) counts: BTreeMap<String, u64>,
    /// The clock at the last look.
    pub(super) since_ms: u64,
    pub(super) nonces: u32,
}

impl<'a, B: Bench> Scene<'a, B> {
    /// With a class of its own.
    pub async fn new(bench: &'a B) -> Self {
        Self::of(bench, fresh_class()).await
    }

    /// With this class, which nobody else uses.
    pub async fn of(bench: &'a B, class: ClassRef) -> Self {
        bench.store().declare(&class).await.expect("a class is declared");
        let mut scene = Self {
            bench,
            holds: vec![None; 1 + class.budgets.len()],
            class,
            trips: Trips::default(),
            jobs: BTreeMap::new(),
            gone: BTreeSet::new(),
            counts: BTreeMap::new(),
            since_ms: 0,
            nonces: 0,
        };
        scene.look().await;
        scene
    }

    /// Compares everything that is stored with what was promised.
    pub async fn look(&mut self) {
        let keys = self.jobs.keys().chain(&self.gone);
        let (picture, moment) = Picture::take(self.bench, &self.class, keys).await;
        self.learn(&picture, &(self.since_ms..=moment.now_ms));
        assert_same(&picture, &self.expected(moment.now_ms), || "stored, and promised".into());
        self.check_pending_age(&moment);
        self.since_ms = moment.now_ms;
    }

    /// The clock at the last look.
    pub fn now_ms(&self) -> u64 {
        self.since_ms
    }

    /// A job as it was last seen.
    pub fn job(&self, key: &str) -> &Job {
        match &self.jobs[key].record {
            Record::Job(job) => job,
            odd => panic!("{key}: {odd:?}"),
        }
    }

    /// Where a job was last seen.
    pub fn place(&self, key: &str) -> (State, u64) {
        match self.jobs[key].score {
            Score::At(score_ms) => (self.jobs[key].state, score_ms),
            score => panic!("{key}: {score:?} was not looked at"),
        }
    }

    /// When the hold on the class (0) or on a budget (from 1 on) ends, as last seen.
    pub fn hold_until_ms(&self, on: usize) -> Option<u64> {
        match self.holds[on].as_ref()?.until? {
            Score::At(until_ms) => Some(until_ms),
            score => panic!("{score:?} was not looked at"),
        }
    }

    /// Fills in what only the store knows: births, and the time of the act.
    fn learn(&mut self, picture: &Picture, act: &RangeInclusive<u64>) {
        for (key, expected) in &mut self.jobs {
            let Some((_, score_ms, record)) = &picture.jobs[key] else { continue };
            learn_score(&mut expected.score, *score_ms, act, key);
            if let (Record::Job(expected), Record::Job(actual)) = (&mut expected.record, record) {
                learn_job(expected, actual, act);
            }
            if expected.pending_since_ms == Some((0, 0)) {
                expected.pending_since_ms = Some((*act.start(), *act.end()));
            }
        }
        for (expected, actual) in self.holds.iter_mut().zip(&picture.holds) {
            let expected = expected.as_mut().and_then(|hold| hold.until.as_mut());
            let actual = actual.as_ref().and_then(|hold| hold.until_ms);
            if let (Some(expected), Some(actual)) = (expected, actual) {
                learn_score(expected, actual, act, "a hold");
            }
        }
    }

    fn expected(&self, now_ms: u64) -> Picture {
        let mut depths = [0; 9];
        let mut lists: BTreeMap<State, Vec<Listed>> = State::ALL.map(|state| (state, Vec::new())).into();
        let mut jobs: BTreeMap<_, _> = self.gone.iter().map(|key| (key.clone(), None)).collect();
        for (key, job) in &self.jobs {
            let (state, score_ms) = self.place(key);
            depths[usize::from(state.number()) - 1] += 1;
            jobs.insert(key.clone(), Some((state, score_ms, job.record.clone())));
            let listed = Listed { key: key.clone(), score_ms, record: packed(&job.record) };
            lists.get_mut(&state).expect("every state has a list").push(listed);
        }
        lists.values_mut().for_each(|list| list.sort_by_key(|entry| (entry.score_ms, entry.key.clone())));
        let waiting = || self.jobs.keys().map(|key| self.place(key)).filter(|(state, _)| state.is_waiting());
        Picture {
            depths,
            scheduled: waiting().filter(|&(state, at)| state == State::Queued && at > now_ms).count() as u64,
            oldest_due_ms: waiting().filter_map(|(_, at_ms)| now_ms.checked_sub(at_ms)).max(),
            holds: self.holds.iter().map(|hold| self.shown(hold.as_ref()?, now_ms)).collect(),
            lists,
            jobs,
            counts: self.counts.clone(),
        }
    }

    /// A hold that has ended and does not probe is no hold. One that was just put may have ended before the look.
    fn shown(&self, hold: &Standing, now_ms: u64) -> Option<Hold> {
        let until_ms = hold.until.map(|until| match until {
            Score::At(until_ms) => until_ms,
            Score::Act { delay_ms, .. } => self.since_ms + delay_ms,
            Score::Any => 0,
        });
        let stands = hold.probes || until_ms.is_none_or(|until_ms| until_ms > now_ms);
        stands.then(|| Hold { cause: hold.cause, until_ms, by: hold.by.clone() })
    }

    fn check_pending_age(&self, moment: &Moment) {
        let since = self.jobs.values().filter_map(|job| job.pending_since_ms);
        let (earliest, latest) = since.fold((u64::MAX, u64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)));
        match moment.oldest_pending_ms {
            None => assert_eq!(earliest, u64::MAX, "a job has been pending"),
            Some(age_ms) => {
                let since_ms = moment.now_ms - age_ms;
                assert!((earliest..=latest).contains(&since_ms), "{earliest}..={latest}: {since_ms}");
            }
        }
    }
}

fn learn_score(expected: &mut Score, actual: u64, act: &RangeInclusive<u64>, what: &str) {
    match *expected {
        Score::At(_) => return,
        Score::Any => {}
        Score::Act { delay_ms, not_before_ms } => {
            let earliest = (act.start() + delay_ms).max(not_before_ms);
            let latest = (act.end() + delay_ms).max(not_before_ms);
            assert!((earliest..=latest).contains(&actual), "{what}: {earliest}..={latest}: {actual}");
        }
    }
    *expected = Score::At(actual);
}

fn learn_job(expected: &mut Job, actual: &Job, act: &RangeInclusive<u64>) {
    if expected.birth == [0; 8] {
        assert_ne!(actual.birth, [0; 8], "zeros are the birth of what cannot be read");
        expected.birth = actual.birth;
    }
    let mut created = Some(expected.created_at_ms);
    learn_time(&mut created, Some(actual.created_at_ms), act);
    expected.created_at_ms = created.unwrap_or_default();
    learn_time(&mut expected.throttled_since_ms, actual.throttled_since_ms, act);
    learn_time(&mut expected.sent_since_ms, actual.sent_since_ms, act);
}

fn learn_time(expected: &mut Option<u64>, actual: Option<u64>, act: &RangeInclusive<u64>) {
    if *expected == Some(NOW) && actual.is_some_and(|actual| act.contains(&actual)) {
        *expected = actual;
    }
}

/// A record as a list shows it: a document that lives apart is not loaded.
fn packed(record: &Record) -> Record {
    match record {
        Record::Job(job) if job.document.len() > 4_096 => {
            Record::Job(Box::new(Job { document: Vec::new(), ..Job::clone(job) }))
        }
        record => record.clone(),
    }
}

/// What is left of a job that is over: no document, and its last attempt.
pub(super) fn shrink(job: &mut Job, last: Option<Attempt>) {
    job.document.clear();
    job.history = History::default();
    last.into_iter().for_each(|attempt| job.history.push(attempt));
}
