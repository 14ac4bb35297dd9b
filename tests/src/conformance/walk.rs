//! A random walk over two stores at once. After every step both must have answered the same and must hold the same:
//! so the memory store is a model of the scripts, and each finds the other's mistakes.
//!
//! Times are either at once or an hour away, so that the few ms by which two clocks differ decide nothing.

use super::bench::Bench;
use super::ends::{Ending, end};
use super::picture::{Picture, assert_same};
use super::scene::{HOUR_MS, fresh_name};
use crate::store::{class_with, job, spender};
use paceline_core::decide::{HoldCause, HoldOn, Signal};
use paceline_core::history::{Attempt, History};
use paceline_core::policy::Trips;
use paceline_core::{Job, State};
use paceline_store::*;

const KEYS: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

/// Chance from a seed: the same seed walks the same way.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn some_keys(&mut self) -> Vec<&'static str> {
        (0..=self.below(4)).map(|_| self.of(&KEYS)).collect()
    }
}

/// One end in a settlement: which job of which batch, and what is decided.
#[derive(Debug, Clone)]
struct Told {
    claimed: usize,
    target: State,
    signal: Signal,
    message_id: Option<&'static str>,
    later: bool,
    ambiguous: bool,
    unsent: bool,
    decided_again: bool,
    lapses: u8,
    hold: Option<(HoldOn, HoldCause, u64, u64)>,
}

/// One step.
#[derive(Debug, Clone)]
enum Step {
    Push { keys: Vec<&'static str>, other: bool, later: bool, expired: bool, cost: u16 },
    Claim { max_jobs: usize, lapses: bool, again: bool, lookahead_ms: u64 },
    Start { batch: usize },
    Settle { batch: usize, told: Vec<Told> },
    Reap { max_jobs: usize, lapses: bool },
    Replay { jobs: Vec<(&'static str, State)>, interval_ms: f64 },
    Cancel { keys: Vec<&'static str> },
    Erase { key: &'static str },
    Sweep { state: State, max_jobs: usize },
    Hold { budget: Option<usize>, cause: Option<HoldCause>, delay_ms: Option<u64> },
    Newer { key: &'static str },
    Page { state: State, after: usize },
}

fn step(dice: &mut Dice, batches: usize) -> Step {
    let batch = batches.saturating_sub(1 + dice.below(4).min(batches.saturating_sub(1)));
    match dice.below(24) {
        0..=5 => Step::Push {
            keys: dice.some_keys(),
            other: dice.one_in(5),
            later: dice.one_in(6),
            expired: dice.one_in(8),
            cost: 1 + dice.below(3) as u16,
        },
        6..=10 => Step::Claim {
            max_jobs: 1 + dice.below(4),
            lapses: dice.one_in(3),
            again: dice.one_in(5),
            lookahead_ms: 20,
        },
        11 if batches > 0 => Step::Start { batch },
        12..=15 if batches > 0 => {
            let mut told: Vec<Told> = (0..1 + dice.below(3)).map(|_| told(dice)).collect();
            told.dedup_by_key(|told| told.claimed);
            Step::Settle { batch, told }
        }
        16 | 17 => Step::Reap { max_jobs: 1 + dice.below(3), lapses: dice.one_in(4) },
        18 => Step::Replay {
            jobs: dice.some_keys().into_iter().map(|key| (key, dice.of(&State::ALL))).collect(),
            interval_ms: dice.of(&[0.0, 0.5, HOUR_MS as f64]),
        },
        19 => Step::Cancel { keys: dice.some_keys() },
        20 => Step::Erase { key: dice.of(&KEYS) },
        21 => Step::Sweep { state: dice.of(&State::ALL), max_jobs: 1 + dice.below(3) },
        22 => Step::Hold {
            budget: dice.of(&[None, Some(0), Some(1)]),
            cause: if dice.one_in(3) { Some(dice.of(&HoldCause::ALL)) } else { None },
            delay_ms: dice.of(&[None, Some(1), Some(HOUR_MS)]),
        },
        23 if dice.one_in(6) => Step::Newer { key: dice.of(&KEYS) },
        _ => Step::Page { state: dice.of(&State::ALL), after: dice.below(KEYS.len()) },
    }
}

fn told(dice: &mut Dice) -> Told {
    let signals = [Signal::None, Signal::Throttled, Signal::Failing, Signal::Refused, Signal::Terminal];
    let target = if dice.one_in(3) { State::Submitted } else { dice.of(&State::ALL) };
    let target = if target == State::InFlight { State::Pending } else { target };
    let order = (
        dice.of(&[HoldOn::Class, HoldOn::Credential, HoldOn::Account]),
        dice.of(&HoldCause::ALL),
        dice.of(&[0, 1, HOUR_MS]),
        dice.of(&[0, 1, HOUR_MS]),
    );
    Told {
        claimed: dice.below(3),
        target,
        signal: if target == State::Submitted { Signal::Clean } else { dice.of(&signals) },
        message_id: dice.of(&[None, Some("m1"), Some("m2")]),
        later: dice.one_in(5),
        ambiguous: dice.one_in(6),
        unsent: dice.one_in(6),
        decided_again: dice.one_in(6),
        lapses: dice.below(4) as u8,
        hold: if dice.one_in(6) { Some(order) } else { None },
    }
}

/// A walker over one store.
struct Walker<'a, B> {
    bench: &'a B,
    class: ClassRef,
    trips: Trips,
    batches: Vec<Batch>,
    asks: usize,
}

impl<'a, B: Bench> Walker<'a, B> {
    async fn new(bench: &'a B, class: &ClassRef) -> Self {
        bench.store().declare(class).await.expect("a class is declared");
        let trips = Trips {
            refused_run: 2,
            terminal_run: 3,
            failing_run: 2,
            suspect_probe_ms: 1,
            outage_probe_ms: 1,
            ..Trips::default()
        };
        Self { bench, class: class.clone(), trips, batches: Vec::new(), asks: 0 }
    }

    /// Takes a step; what was answered, without what two clocks cannot agree on.
    async fn take(&mut self, step: &Step) -> String {
        let (store, class) = (self.bench.store(), &self.class);
        match step {
            Step::Push { .. } => debug(store.push(class, &self.jobs(step).await).await),
            Step::Claim { .. } => self.claim(step).await,
            Step::Start { batch } => {
                let Some(batch) = self.batches.get(*batch) else { return String::new() };
                debug(store.start(class, batch.deadline_ms, &super::ends::marks(batch)).await)
            }
            Step::Settle { batch, told } => {
                let Some(batch) = self.batches.get(*batch) else { return String::new() };
                let ends: Vec<Settlement> = told.iter().filter_map(|told| told.end(batch)).collect();
                debug(store.settle(class, &self.trips, &ends).await)
            }
            Step::Reap { max_jobs, lapses } => {
                let batch = store.reap(class, *max_jobs, if *lapses { 1 } else { HOUR_MS }).await;
                self.remember(batch.expect("a reap is answered"))
            }
            Step::Replay { jobs, interval_ms } => {
                let jobs: Vec<_> = jobs.iter().map(|(key, state)| ((*key).to_owned(), *state)).collect();
                debug(store.replay(class, ReplayPace { interval_ms: *interval_ms }, &jobs).await)
            }
            Step::Cancel { keys } => {
                let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
                debug(store.cancel(class, &keys).await)
            }
            Step::Erase { key } => debug(store.erase(class, key).await),
            Step::Sweep { state, max_jobs } => debug(store.sweep(class, *state, 0, *max_jobs).await),
            Step::Hold { budget, cause, delay_ms } => {
                let on = budget.map_or(Held::Class, |budget| Held::Budget(&class.budgets[budget].name));
                debug(store.hold(class, on, *cause, *delay_ms, "ada").await)
            }
            Step::Newer { key } => {
                if store.get(class, key).await.expect("a job is read").is_some() {
                    self.bench.plant(class, key, &Record::Newer(9)).await;
                }
                String::new()
            }
            Step::Page { state, after } => self.page(*state, *after).await,
        }
    }

    async fn jobs(&self, step: &Step) -> Vec<NewJob> {
        let Step::Push { keys, other, later, expired, cost } = step else { return Vec::new() };
        let now_ms = self.bench.store().depths(&self.class).await.expect("depths are read").now_ms;
        let document = if *other { vec![b'x'; 5_000] } else { b"{}".to_vec() };
        let new = |key: &&str| NewJob {
            at_ms: if *later { now_ms + HOUR_MS } else { 0 },
            expires_at_ms: u64::from(*expired),
            cost: *cost,
            document: document.clone(),
            ..job(key)
        };
        keys.iter().map(new).collect()
    }

    async fn claim(&mut self, step: &Step) -> String {
        let Step::Claim { max_jobs, lapses, again, lookahead_ms } = step else { return String::new() };
        self.asks += usize::from(!again);
        let ask = ClaimAsk {
            worker: "w".into(),
            nonce: format!("n{}", self.asks),
            max_jobs: *max_jobs,
            lease_ms: if *lapses { 1 } else { HOUR_MS },
            lookahead_ms: *lookahead_ms,
            solo_lapses: 2,
        };
        match self.bench.store().claim(&self.class, &ask).await.expect("a claim is answered") {
            Claim::Jobs(batch) => self.remember(batch),
            Claim::Wait { ms, term } => format!("wait {:?} {term}", soon(ms)),
            Claim::Empty { next_ms } => format!("empty {:?}", soon(next_ms)),
        }
    }

    fn remember(&mut self, batch: Batch) -> String {
        let jobs: Vec<_> =
            batch.jobs.iter().map(|job| (&job.key, job.offset_ms, timeless(&job.record))).collect();
        let answer = format!("{:?} {:?} {jobs:?}", soon(batch.next_ms), batch.probe);
        if !batch.jobs.is_empty() {
            self.batches.push(batch);
        }
        answer
    }

    /// A page behind a key, which may not be there, at the score of the first entry.
    async fn page(&self, state: State, after: usize) -> String {
        let list = async |after: &Cursor| {
            self.bench.store().list(&self.class, state, after, 3).await.expect("a list is read")
        };
        let Some(first) = list(&Cursor::default()).await.into_iter().next() else { return String::new() };
        let page = list(&Cursor { score_ms: first.score_ms, key: KEYS[after].into() }).await;
        debug(page.into_iter().map(|entry| (entry.key, timeless(&entry.record))).collect::<Vec<_>>())
    }

    /// Everything that is stored, without what two clocks cannot agree on.
    async fn picture(&self) -> (Picture, Option<u64>) {
        let keys: Vec<String> = KEYS.map(str::to_owned).to_vec();
        let (mut picture, moment) = Picture::take(self.bench, &self.class, keys.iter()).await;
        let past = |age: Option<u64>| age.map(|_| 0);
        picture.oldest_due_ms = past(picture.oldest_due_ms);
        picture.holds.iter_mut().flatten().for_each(|hold| hold.until_ms = past(hold.until_ms));
        for entry in picture.lists.values_mut().flatten() {
            (entry.score_ms, entry.record) = (0, timeless(&entry.record));
        }
        for job in picture.jobs.values_mut().flatten() {
            (job.1, job.2) = (0, timeless(&job.2));
        }
        (picture, past(moment.oldest_pending_ms))
    }
}

fn debug(answer: impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}

/// At once, later, or never.
fn soon(ms: Option<u64>) -> Option<bool> {
    ms.map(|ms| ms == 0)
}

fn timeless(record: &Record) -> Record {
    let Record::Job(job) = record else { return record.clone() };
    let mut history = History::default();
    job.history.attempts().iter().for_each(|attempt| history.push(Attempt { at_ms: 0, ..attempt.clone() }));
    Record::Job(Box::new(Job {
        birth: [0; 8],
        created_at_ms: 0,
        throttled_since_ms: job.throttled_since_ms.map(|_| 0),
        sent_since_ms: job.sent_since_ms.map(|_| 0),
        history,
        ..Job::clone(job)
    }))
}

impl Told {
    fn end(&self, batch: &Batch) -> Option<Settlement> {
        let claimed = batch.jobs.get(self.claimed)?;
        let mut told = end(batch, &claimed.key, self.target).saying(self.signal);
        let counters = &mut told.decision.counters;
        (counters.spent, counters.throttles, counters.run) = (self.lapses, 3, 2);
        counters.lapses = self.lapses;
        told.decision.starts_throttle = self.later;
        told.decided_again = self.decided_again;
        told = self.message_id.into_iter().fold(told, Ending::with_message_id);
        told = if self.later { told.after(HOUR_MS) } else { told };
        told = if self.ambiguous { told.ambiguous() } else { told };
        told = if self.unsent { told.unsent() } else { told };
        Some(match self.hold {
            Some((on, cause, delay_ms, probe_ms)) => told.holding(on, cause, delay_ms, probe_ms),
            None => told,
        })
    }
}

/// Walks both; at the first difference it fails with the seed and the way so far.
pub async fn both_stay_the_same<A: Bench, B: Bench>(one: A, two: B, seed: u64, steps: usize) {
    let mut class = class_with(&fresh_name(), "100000/s", 100_000, 0);
    class.budgets.extend(class_with(&fresh_name(), "1/h", 200, 7).budgets);
    class.budgets[1].spenders = vec![spender(class.class.as_str())];
    class.max_waiting = 7;
    let (mut one, mut two) = (Walker::new(&one, &class).await, Walker::new(&two, &class).await);
    let (mut dice, mut way) = (Dice(seed), Vec::new());
    for _ in 0..steps {
        let step = step(&mut dice, one.batches.len());
        way.push(step.clone());
        let said = (one.take(&step).await, two.take(&step).await);
        assert_eq!(said.0, said.1, "seed {seed}: {way:#?}");
        one.bench.pass(2).await;
        two.bench.pass(2).await;
        let seen = (one.picture().await, two.picture().await);
        assert_same(&seen.0, &seen.1, || format!("seed {seed}: {way:#?}"));
    }
}
