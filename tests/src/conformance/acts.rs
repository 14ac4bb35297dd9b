//! What a test can do on a scene. Every act looks at everything afterwards: it must be what the answer promised.

use super::bench::Bench;
use super::scene::{Expected, HOUR_MS, NOW, Scene, Score, Standing, shrink};
use paceline_core::decide::HoldCause;
use paceline_core::{Job, State};
use paceline_store::*;

impl<B: Bench> Scene<'_, B> {
    /// Lets time go by, which alone changes nothing.
    pub async fn pass(&mut self, ms: u64) {
        self.bench.pass(ms).await;
        self.look().await;
    }

    /// Pushes jobs.
    pub async fn push(&mut self, jobs: &[NewJob]) -> Vec<Pushed> {
        let words = self.bench.store().push(&self.class, jobs).await.expect("jobs are pushed");
        for (new, _) in jobs.iter().zip(&words).filter(|(_, word)| **word == Pushed::Created) {
            self.is_created(new);
        }
        self.look().await;
        words
    }

    fn is_created(&mut self, new: &NewJob) {
        let job = Job {
            cost: new.cost,
            expires_at_ms: Some(new.expires_at_ms).filter(|&at_ms| at_ms > 0),
            campaign: new.campaign.clone(),
            ..Job::new(new.key.clone(), new.document.clone(), NOW)
        };
        let expected = Expected {
            state: State::Queued,
            score: Score::Act { delay_ms: 0, not_before_ms: new.at_ms },
            record: Record::Job(Box::new(job)),
            pending_since_ms: None,
        };
        self.gone.remove(new.key.as_str());
        let before = self.jobs.insert(new.key.to_string(), expected);
        assert!(before.is_none(), "{} was created twice", new.key);
    }

    /// An ask under a nonce of its own and a lease that outlives the test.
    pub fn ask(&mut self, max_jobs: usize) -> ClaimAsk {
        self.nonces += 1;
        ClaimAsk {
            worker: "w".into(),
            nonce: format!("n{}", self.nonces),
            max_jobs,
            lease_ms: HOUR_MS,
            lookahead_ms: 0,
            solo_lapses: 2,
        }
    }

    /// Claims jobs, of which there are some.
    pub async fn claim(&mut self, max_jobs: usize) -> Batch {
        let ask = self.ask(max_jobs);
        self.claim_jobs(&ask).await
    }

    /// The same under a lease that lapses at once: it has lapsed when this returns.
    pub async fn claim_and_lapse(&mut self, max_jobs: usize) -> Batch {
        let ask = ClaimAsk { lease_ms: 1, ..self.ask(max_jobs) };
        let batch = self.claim_jobs(&ask).await;
        self.pass(2).await;
        batch
    }

    /// Claims with this ask, and there are jobs.
    pub async fn claim_jobs(&mut self, ask: &ClaimAsk) -> Batch {
        match self.claim_with(ask).await {
            Claim::Jobs(batch) => batch,
            other => panic!("{other:?}"),
        }
    }

    /// Claims, and there is nothing to be had.
    pub async fn claim_nothing(&mut self) -> Claim {
        let ask = self.ask(10);
        let claim = self.claim_with(&ask).await;
        assert!(!matches!(claim, Claim::Jobs(_)), "{claim:?}");
        claim
    }

    /// Claims with this ask.
    pub async fn claim_with(&mut self, ask: &ClaimAsk) -> Claim {
        let claim = self.bench.store().claim(&self.class, ask).await.expect("a claim is answered");
        if let Claim::Jobs(batch) = &claim {
            self.is_leased(batch);
        }
        self.look().await;
        claim
    }

    fn is_leased(&mut self, batch: &Batch) {
        for claimed in &batch.jobs {
            let job = self.jobs.get_mut(&claimed.key).expect("a job that was pushed");
            assert_eq!(claimed.record, job.record, "it is handed out as it is stored");
            (job.state, job.score) = (State::InFlight, Score::At(batch.deadline_ms));
        }
    }

    /// The next claim finds these expired.
    pub fn will_expire(&mut self, keys: &[&str]) {
        for key in keys {
            let job = self.jobs.get_mut(*key).expect("a job that was pushed");
            job.is_over_without_settle("expired", State::Expired, &mut self.counts);
        }
    }

    /// Marks jobs of a batch as started.
    pub async fn start(&mut self, deadline_ms: u64, jobs: &[(String, [u8; 8])]) -> Vec<bool> {
        let words =
            self.bench.store().start(&self.class, deadline_ms, jobs).await.expect("starts are answered");
        for ((key, _), _) in jobs.iter().zip(&words).filter(|(_, started)| **started) {
            self.jobs.get_mut(key).expect("a job that was pushed").flags().started = true;
        }
        self.look().await;
        words
    }

    /// Takes over lapsed leases under one that outlives the test.
    pub async fn reap(&mut self, max_jobs: usize) -> Batch {
        self.reap_for(max_jobs, HOUR_MS).await
    }

    /// Takes over lapsed leases.
    pub async fn reap_for(&mut self, max_jobs: usize, lease_ms: u64) -> Batch {
        let batch =
            self.bench.store().reap(&self.class, max_jobs, lease_ms).await.expect("a reap is answered");
        self.is_leased(&batch);
        self.look().await;
        batch
    }

    /// Reports ends.
    pub async fn settle(&mut self, ends: &[Settlement]) -> Vec<Settled> {
        let settled = self.bench.store().settle(&self.class, &self.trips, ends).await;
        let words = settled.expect("ends are settled");
        ends.iter().zip(&words).for_each(|(end, word)| self.is_settled(end, *word));
        self.look().await;
        words
    }

    fn is_settled(&mut self, end: &Settlement, word: Settled) {
        match word {
            Settled::Moved(state) => self.count(&format!("{}|{state}", end.count)),
            Settled::Late(state) => {
                self.count(&format!("{}|submitted", end.count));
                self.count(&format!("|late|{state}"));
            }
            Settled::Twice => self.count("|twice|submitted"),
            Settled::Already => self.count("|already|"),
            Settled::Stale => self.count("|stale|"),
            Settled::Gone => self.count("|gone|"),
            Settled::Parked => self.count("|parked|deferred"),
            Settled::Held(_) => {}
        }
        if let Some(job) = self.jobs.get_mut(&end.key) {
            job.is_settled(end, word);
        }
    }

    /// Counts something that must have been counted.
    pub(super) fn count(&mut self, code: &str) {
        *self.counts.entry(code.to_owned()).or_default() += 1;
    }

    /// Replays dead letters.
    pub async fn replay(&mut self, interval_ms: f64, jobs: &[(&str, State)]) -> Vec<Replayed> {
        let named: Vec<(String, State)> =
            jobs.iter().map(|(key, state)| ((*key).to_owned(), *state)).collect();
        let pace = ReplayPace { interval_ms };
        let words = self.bench.store().replay(&self.class, pace, &named).await.expect("a replay is answered");
        for ((key, _), _) in jobs.iter().zip(&words).filter(|(_, word)| **word == Replayed::Replayed) {
            self.count("|replayed|pending");
            self.jobs.get_mut(*key).expect("a job that was pushed").is_replayed();
        }
        self.look().await;
        words
    }

    /// Withdraws jobs.
    pub async fn cancel(&mut self, keys: &[&str]) -> Vec<Cancelled> {
        let named: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let words = self.bench.store().cancel(&self.class, &named).await.expect("a cancel is answered");
        for (key, word) in keys.iter().zip(&words) {
            let Some(job) = self.jobs.get_mut(*key) else { continue };
            match word {
                Cancelled::Cancelled(_) => {
                    job.is_over_without_settle("cancelled", State::Cancelled, &mut self.counts);
                }
                Cancelled::Marked => job.flags().cancel = true,
                Cancelled::Over(_) | Cancelled::Missing => {}
            }
        }
        self.look().await;
        words
    }

    /// Removes a job's content.
    pub async fn erase(&mut self, key: &str) -> Erased {
        let word = self.bench.store().erase(&self.class, key).await.expect("an erase is answered");
        if let Erased::Erased(state) = word {
            let job = self.jobs.get_mut(key).expect("a job that was pushed");
            shrink(job.job(), None);
            if job.state != state {
                job.moves(state, 0);
            }
        }
        self.look().await;
        word
    }

    /// Forgets jobs that are over: the oldest, which are the first of their list.
    pub async fn sweep(&mut self, state: State, older_than_ms: u64, max_jobs: usize) -> usize {
        let swept = self.bench.store().sweep(&self.class, state, older_than_ms, max_jobs).await;
        let swept = swept.expect("a sweep is answered");
        let mut over: Vec<(State, u64, String)> = self
            .jobs
            .keys()
            .map(|key| (self.place(key), key))
            .map(|(at, key)| (at.0, at.1, key.clone()))
            .collect();
        over.retain(|(other, ..)| *other == state);
        over.sort();
        for (_, _, key) in over.into_iter().take(swept) {
            self.jobs.remove(&key);
            self.gone.insert(key);
        }
        self.look().await;
        swept
    }

    /// Puts a record that nobody can read in the place of a job's.
    pub async fn plant(&mut self, key: &str, record: Record) {
        self.bench.plant(&self.class, key, &record).await;
        self.jobs.get_mut(key).expect("a job that was pushed").record = record;
        self.look().await;
    }

    /// Lets a job's expiry pass.
    pub async fn expire(&mut self, key: &str) {
        self.bench.expire(&self.class, key).await;
        self.jobs.get_mut(key).expect("a job that was pushed").job().expires_at_ms = Some(1);
        self.look().await;
    }

    /// A person holds the class, or lifts its hold.
    pub async fn hold(&mut self, cause: Option<HoldCause>, delay_ms: Option<u64>, by: &str) {
        let held = self.bench.store().hold(&self.class, Held::Class, cause, delay_ms, by).await;
        held.expect("a hold is put");
        self.is_held(0, cause, delay_ms, by);
        self.look().await;
    }

    /// A person holds a budget (0 is the credential's), or lifts its hold.
    pub async fn hold_budget(
        &mut self,
        budget: usize,
        cause: Option<HoldCause>,
        delay_ms: Option<u64>,
        by: &str,
    ) {
        let on = Held::Budget(&self.class.budgets[budget].name);
        let held = self.bench.store().hold(&self.class, on, cause, delay_ms, by).await;
        held.expect("a hold is put");
        self.is_held(budget + 1, cause, delay_ms, by);
        self.look().await;
    }

    fn is_held(&mut self, on: usize, cause: Option<HoldCause>, delay_ms: Option<u64>, by: &str) {
        let until = delay_ms.map(|delay_ms| Score::Act { delay_ms, not_before_ms: 0 });
        self.holds[on] = cause.map(|cause| Standing { cause, until, probes: false, by: by.to_owned() });
    }

    /// The next act puts an automatic hold on the class (0) or on a budget (from 1 on).
    pub fn will_hold(&mut self, on: usize, cause: HoldCause, delay_ms: u64, probe_ms: u64) {
        self.is_held(on, Some(cause), Some(delay_ms), "worker");
        self.holds[on].as_mut().expect("it was just put").probes = probe_ms > 0;
    }

    /// The next act releases a hold.
    pub fn will_release(&mut self, on: usize) {
        self.holds[on] = None;
    }
}
