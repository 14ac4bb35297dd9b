//! One schedule: what may happen, in an order that its seed throws.

use crate::Tally;
use crate::dice::Dice;
use crate::provider::{Provider, Terms};
use crate::worker::{Asking, InHand, LATE_MS, LEASE_MS, Stage, Worker, settlement, verdict};
use futures_util::FutureExt;
use paceline_core::outcome::WORKER_LOST;
use paceline_core::policy::Policy;
use paceline_core::send_id::send_id;
use paceline_core::vocabulary::{ProviderRules, classify};
use paceline_core::{Outcome, Seen, State, decide};
use paceline_store::{
    Batch, Claim, ClaimAsk, Claimed, ClassRef, Held, MemoryStore, NewJob, Record, ReplayPace, Settled, Store,
};
use paceline_tests::store::{class_with, job};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use uuid::Uuid;

const WORKERS: usize = 3;
const KEYS: usize = 24;

/// A movement of the memory store is done when it is asked for.
pub(crate) fn now<T>(movement: impl Future<Output = paceline_store::movement::Result<T>>) -> T {
    movement.now_or_never().expect("the memory store never waits").expect("the memory store never fails")
}

pub(crate) struct Schedule {
    pub(crate) terms: Terms,
    pub(crate) dice: Dice,
    pub(crate) store: MemoryStore,
    pub(crate) class: ClassRef,
    pub(crate) policy: Policy,
    pub(crate) provider: Provider,
    pub(crate) workers: Vec<Worker>,
    /// Acknowledged pushes, and since when.
    pub(crate) pushed: BTreeMap<String, u64>,
    /// Keys that a person sent again although they may have been accepted, and how often.
    pub(crate) approved: BTreeMap<String, u64>,
    /// Keys with the mark of a start, at any time.
    pub(crate) started: BTreeSet<String>,
    /// What Redis has on its disk.
    disk: MemoryStore,
    tally: Tally,
}

impl Schedule {
    pub(crate) fn new(terms: Terms, seed: u64) -> Self {
        let store = MemoryStore::new();
        let class = class_with("bulk", "50/s", 20, 0);
        now(store.declare(&class));
        let worker = |n: usize| Worker { name: format!("w{n}"), ..Worker::default() };
        Self {
            terms,
            dice: Dice::new(seed),
            disk: store.snapshot(),
            store,
            class,
            policy: terms.policy(),
            provider: Provider::new(terms),
            workers: (0..WORKERS).map(worker).collect(),
            pushed: BTreeMap::new(),
            approved: BTreeMap::new(),
            started: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    pub(crate) fn step(&mut self) {
        let at = self.dice.below(WORKERS);
        match self.dice.below(100) {
            0..=13 => self.push(),
            14..=37 => self.claim(at),
            38..=77 => self.carry_on(at),
            78..=79 => self.kill(at),
            80..=86 => self.reap(),
            87..=88 => self.cancel(),
            89..=90 => self.replay(),
            91 => self.pause(),
            92 if self.terms == Terms::LosesSeconds => self.lose_a_second(),
            _ => self.wait(),
        }
    }

    fn reply_is_lost(&mut self) -> bool {
        let lost = !self.provider.is_well && self.dice.one_in(8);
        self.tally.lost_replies += u64::from(lost);
        lost
    }

    fn wait(&mut self) {
        let ms = [5, 50, 300, 1_500, 6_000, 25_000][self.dice.below(6)];
        self.advance(ms);
    }

    /// The disk lags by less than a second, so a longer wait leaves it as Redis is.
    fn advance(&mut self, ms: u64) {
        self.store.advance(ms);
        if ms >= 1_000 || self.dice.one_in(3) {
            self.disk = self.store.snapshot();
        }
    }

    fn some_key(&mut self) -> String {
        format!("k{}", self.dice.below(KEYS))
    }

    fn push(&mut self) {
        let now_ms = self.store.now_ms();
        for _ in 0..=self.dice.below(3) {
            let key = self.some_key();
            let expires_at_ms = if self.dice.one_in(6) { now_ms + 2_000 } else { 0 };
            let new = NewJob { expires_at_ms, ..job(&key) };
            now(self.store.push(&self.class, std::slice::from_ref(&new)));
            if self.reply_is_lost() {
                now(self.store.push(&self.class, &[new]));
            }
            self.pushed.entry(key).or_insert(now_ms);
        }
    }

    fn claim(&mut self, at: usize) {
        let now_ms = self.store.now_ms();
        let worker = &mut self.workers[at];
        let asking = worker.asking.take().unwrap_or_else(|| {
            worker.claims += 1;
            Asking { nonce: format!("{}-{}", worker.name, worker.claims), first_sent_ms: now_ms }
        });
        let ask = ClaimAsk {
            worker: worker.name.clone(),
            nonce: asking.nonce.clone(),
            max_jobs: 1 + self.dice.below(4),
            lease_ms: LEASE_MS,
            lookahead_ms: 20,
            solo_lapses: self.policy.solo_lapses,
        };
        let claim = now(self.store.claim(&self.class, &ask));
        if self.reply_is_lost() {
            self.workers[at].asking = Some(asking);
            return;
        }
        if let Claim::Jobs(batch) = claim {
            let in_hand = in_hand(&batch, asking.first_sent_ms);
            self.workers[at].in_hand.extend(in_hand);
        }
    }

    /// The next step of one of the worker's jobs.
    fn carry_on(&mut self, at: usize) {
        let n = self.workers[at].in_hand.len();
        if n == 0 {
            return self.claim(at);
        }
        let index = self.dice.below(n);
        let mut of = self.workers[at].in_hand.swap_remove(index);
        let now_ms = self.store.now_ms();
        let is_late = now_ms - of.first_sent_ms > LATE_MS;
        of.stage = match of.stage {
            Stage::Claimed if self.policy.dedup_window_ms.is_none() => {
                let mark = [(of.key.clone(), of.job.birth)];
                let is_fresh = now(self.store.start(&self.class, of.deadline_ms, &mark))[0];
                if is_fresh {
                    self.started.insert(of.key.clone());
                }
                if self.reply_is_lost() {
                    Stage::Claimed
                } else if is_fresh {
                    Stage::Started
                } else {
                    return;
                }
            }
            Stage::Claimed | Stage::Started if is_late => {
                Stage::Ended(verdict(Outcome::NotSent { reason: "too late to write".into() }))
            }
            Stage::Claimed | Stage::Started => Stage::Writing,
            Stage::Writing => {
                let id = send_id(Uuid::from_u128(7), &self.class.class, &of.job.key, of.job.revision);
                let answer = self.provider.hear(&of.key, &id.to_string(), now_ms, &mut self.dice);
                Stage::Ended(Box::new(classify(&answer, &ProviderRules::default(), now_ms)))
            }
            Stage::Ended(ref verdict) => {
                let verdict = verdict.clone();
                return self.settle(at, of, &verdict);
            }
        };
        self.workers[at].in_hand.push(of);
    }

    fn settle(&mut self, at: usize, mut of: InHand, verdict: &paceline_core::vocabulary::Verdict) {
        let now_ms = self.store.now_ms();
        let decision = decide(&of.job, &verdict.outcome, &self.policy, of.seen, now_ms, self.dice.draws());
        let told = settlement(&of, verdict, decision, now_ms);
        let settled = now(self.store.settle(&self.class, &self.policy.trips, &[told]))[0];
        self.tally.late += u64::from(matches!(settled, Settled::Late(_)));
        if let Settled::Held(cause) = settled {
            of.seen.hold = Some(cause);
            self.workers[at].in_hand.push(of);
        } else if self.reply_is_lost() {
            // Told again, decided anew, now or after its lease.
            self.workers[at].in_hand.push(of);
        }
    }

    /// SIGKILL: whatever it had in hand is forgotten.
    fn kill(&mut self, at: usize) {
        let name = format!("{}'", self.workers[at].name);
        self.workers[at] = Worker { name, ..Worker::default() };
    }

    fn reap(&mut self) {
        let now_ms = self.store.now_ms();
        let batch = now(self.store.reap(&self.class, 1 + self.dice.below(3), 5_000));
        if self.reply_is_lost() {
            return;
        }
        for mut of in in_hand(&batch, now_ms) {
            self.tally.lapses += 1;
            let is_unsent = self.policy.dedup_window_ms.is_none() && !of.job.flags.started;
            let outcome = if is_unsent {
                Outcome::NotSent { reason: WORKER_LOST.into() }
            } else {
                Outcome::ambiguous(WORKER_LOST)
            };
            of.stage = Stage::Ended(verdict(outcome));
            let at = self.dice.below(WORKERS);
            self.workers[at].in_hand.push(of);
        }
    }

    fn cancel(&mut self) {
        let key = self.some_key();
        now(self.store.cancel(&self.class, &[key]));
    }

    /// A person replays a dead letter; one that may have been accepted is that person's risk.
    fn replay(&mut self) {
        let key = self.some_key();
        let Some(stored) = now(self.store.get(&self.class, &key)) else { return };
        let (Some(state), Record::Job(job)) = (stored.state, &stored.record) else { return };
        if !matches!(state, State::Deferred | State::Unconfirmed | State::Failed) {
            return;
        }
        if job.flags.ambiguous {
            *self.approved.entry(key.clone()).or_default() += 1;
        }
        now(self.store.replay(&self.class, ReplayPace { interval_ms: 10.0 }, &[(key, state)]));
    }

    fn pause(&mut self) {
        let cause = paceline_core::decide::HoldCause::Pause;
        now(self.store.hold(&self.class, Held::Class, Some(cause), Some(3_000), "a person"));
    }

    /// SIGKILL of Redis with `appendfsync everysec`; the workers live on with what they have in hand.
    fn lose_a_second(&mut self) {
        let (now_ms, restored) = (self.store.now_ms(), self.disk.snapshot());
        restored.advance(now_ms - restored.now_ms());
        self.store = restored;
        self.tally.restores += 1;
        let (store, class) = (&self.store, &self.class);
        self.pushed.retain(|key, at_ms| {
            now(store.get(class, key)).is_some() || {
                assert!(now_ms - *at_ms <= 1_000, "{key} was pushed more than a second ago");
                false
            }
        });
    }

    /// The faults end, a person lifts what stands, and everything that can go goes.
    pub(crate) fn come_to_rest(&mut self) {
        self.provider.is_well = true;
        for _ in 0..2_000 {
            let credential = self.class.budgets[0].name.clone();
            for on in [Held::Class, Held::Budget(&credential)] {
                now(self.store.hold(&self.class, on, None, None, "a person"));
            }
            for at in 0..WORKERS {
                self.claim(at);
                while !self.workers[at].in_hand.is_empty() {
                    self.carry_on(at);
                }
            }
            self.reap();
            self.assert_always();
            let depths = now(self.store.depths(&self.class));
            if depths.waiting() + depths.of(State::InFlight) == 0 {
                return;
            }
            self.store.advance(700);
        }
        panic!("it never came to rest: {:?}", now(self.store.depths(&self.class)));
    }

    pub(crate) fn add_to(&self, tally: &mut Tally) {
        let depths = now(self.store.depths(&self.class));
        tally.pushed += self.pushed.len();
        tally.submitted += depths.of(State::Submitted);
        tally.unconfirmed += depths.of(State::Unconfirmed);
        tally.lapses += self.tally.lapses;
        tally.late += self.tally.late;
        tally.lost_replies += self.tally.lost_replies;
        tally.restores += self.tally.restores;
    }
}

fn in_hand(batch: &Batch, first_sent_ms: u64) -> Vec<InHand> {
    let of = |claimed: &Claimed| {
        let Record::Job(job) = &claimed.record else { panic!("{claimed:?}") };
        InHand {
            key: claimed.key.clone(),
            job: (**job).clone(),
            deadline_ms: batch.deadline_ms,
            claimed_ms: batch.now_ms,
            first_sent_ms,
            seen: Seen { probe: batch.probe, hold: None },
            stage: Stage::Claimed,
        }
    };
    batch.jobs.iter().map(of).collect()
}
