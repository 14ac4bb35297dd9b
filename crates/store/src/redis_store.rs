//! The movements on Redis: arguments out, answers in. What happens in between is in `lua/`.

mod address;
mod answers;
mod call;
mod clock;
mod scan;
mod server;
mod spec;
pub(crate) mod wake;
mod wire;

use crate::error::StoreError;
use crate::keys::{BudgetRef, ClassRef, Keys};
use crate::movement::*;
use crate::order;
use crate::reconcile::{Reconcile, Reconciled};
use crate::scripts::{self, Script};
pub use server::{ServerFacts, Stranded};

use call::Call;
use clock::Clock;
use paceline_core::budget::Limits;
use paceline_core::decide::HoldCause;
use paceline_core::policy::Trips;
use paceline_core::{Name, State};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;
use wire::Wire;

/// How long counts of a minute are kept.
const COUNT_TTL_S: u64 = 48 * 3_600;

/// Paceline's data in one Redis, or in one Redis Cluster. Cheap to clone.
#[derive(Clone)]
pub struct RedisStore {
    wire: Arc<Wire>,
    keys: Keys,
    clock: Arc<Clock>,
    waits_for_replica: bool,
}

/// How long a push or a claim waits for a replica to have it.
const REPLICA_WAIT: Duration = Duration::from_millis(500);

impl RedisStore {
    /// Connects lazily: an address that does not answer is found at the first call, which may be repeated.
    /// `redis://`, `rediss://`, `redis+sentinel://host:port,host:port/master`, or `redis+cluster://host:port,host:port`.
    pub fn open(url: &str, namespace: Name, response_timeout: Duration) -> Result<Self> {
        let wire = Arc::new(Wire::open(url, response_timeout)?);
        Ok(Self {
            wire,
            keys: Keys::new(namespace),
            clock: Arc::new(Clock::start()),
            waits_for_replica: false,
        })
    }

    /// Push and claim wait for one replica, best effort: what a failover forgets is the less.
    pub fn waiting_for_replica(self) -> Self {
        Self { waits_for_replica: true, ..self }
    }

    /// Commands of one connection are in order, so this is about all that was written before. In a cluster the
    /// client asks every master and gives back the least.
    async fn await_replica(&self) {
        if !self.waits_for_replica {
            return;
        }
        let mut wait = redis::cmd("WAIT");
        wait.arg(1).arg(REPLICA_WAIT.as_millis() as u64);
        match self.wire.query(&wait, "WAIT").await {
            Ok(redis::Value::Int(copies)) if copies > 0 => {}
            Ok(_) => tracing::warn!("no replica has the last write: a failover now would forget it"),
            Err(error) => tracing::warn!(%error, "no replica could be waited for"),
        }
    }

    /// Redis's clock in ms, estimated from the last answer and this process's monotonic clock.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// What wakes idle workers of these classes.
    pub fn waker(&self, classes: &[ClassRef]) -> wake::Waker {
        wake::Waker::new(self.wire.clone(), classes, &self.keys)
    }

    /// The deployment's id: the configured one, else the one in Redis, else a new one made of `fresh`.
    /// Refuses a configured id that differs from the one in Redis: foreign jobs would get new send ids.
    pub async fn deployment(&self, configured: Option<Uuid>, fresh: Uuid) -> Result<Uuid> {
        let key = self.keys.deployment();
        let wanted = configured.unwrap_or(fresh).to_string();
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(&wanted).arg("NX");
        self.wire.query(&set, &key).await?;
        let mut get = redis::cmd("GET");
        get.arg(&key);
        let kept = answers::text(&self.wire.query(&get, &key).await?)?;
        match (configured, kept.parse::<Uuid>()) {
            (Some(ours), theirs) if theirs.as_ref().ok() != Some(&ours) => {
                Err(StoreError::ForeignDeployment { theirs: kept, ours: ours.to_string() })
            }
            (_, Ok(id)) => Ok(id),
            (_, Err(_)) => Err(StoreError::Misconfigured(format!("{key} does not hold a UUID"))),
        }
    }

    /// The counts of the last `minutes` minutes, oldest first: `(minute, {code|outcome|state: n})`.
    pub async fn counts(&self, class: &ClassRef, minutes: u64) -> Result<Vec<(u64, Vec<(String, u64)>)>> {
        let now = self.now_ms() / 60_000;
        let mut counts = Vec::new();
        for minute in now.saturating_sub(minutes.saturating_sub(1))..=now {
            let key = self.keys.minute(class, minute);
            let mut read = redis::cmd("HGETALL");
            read.arg(&key);
            counts.push((minute, answers::pairs(&self.wire.query(&read, &key).await?)?));
        }
        Ok(counts)
    }

    /// The last decisions about a budget's pace, newest first.
    pub async fn decisions(
        &self,
        class: &ClassRef,
        budget: &BudgetRef,
        max: usize,
    ) -> Result<Vec<PaceDecision>> {
        let key = self.keys.decisions(class, &budget.name);
        let mut read = redis::cmd("XREVRANGE");
        read.arg(&key).arg("+").arg("-").arg("COUNT").arg(max);
        answers::decisions(&self.wire.query(&read, &key).await?)
    }

    fn call(&self, script: &'static Script, class: &ClassRef) -> Call {
        Call::new(script, self.keys.class(class, self.clock.now_ms() / 60_000))
    }

    async fn run(&self, call: Call) -> Result<answers::Answer> {
        let answer = answers::Answer::read(self.wire.run(&call).await?)?;
        if let Some(now_ms) = answer.now_ms() {
            self.clock.heard(now_ms);
        }
        Ok(answer)
    }

    fn prefixes(&self, class: &ClassRef) -> [String; 2] {
        [self.keys.job(class, ""), self.keys.body(class, "")]
    }

    fn job_keys<'a>(&'a self, class: &'a ClassRef, keys: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        keys.into_iter().map(|key| self.keys.job(class, key)).collect()
    }

    fn body_keys<'a>(&'a self, class: &'a ClassRef, keys: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        keys.into_iter().map(|key| self.keys.body(class, key)).collect()
    }

    fn budget_keys(&self, class: &ClassRef) -> Vec<String> {
        class.budgets.iter().map(|budget| self.keys.budget(class, &budget.name)).collect()
    }

    async fn settle_each_once(
        &self,
        class: &ClassRef,
        trips: &Trips,
        settlements: &[&Settlement],
    ) -> Result<Vec<Settled>> {
        let names = || settlements.iter().map(|settlement| settlement.key.as_str());
        let mut call = self
            .call(&scripts::SETTLE, class)
            .keys(spec::budget_keys(&self.keys, class, false))
            .keys(self.job_keys(class, names()))
            .keys(self.body_keys(class, names()))
            .arg(COUNT_TTL_S)
            .arg(spec::of_settle(class, trips, self.clock.now_ms()));
        for settlement in settlements {
            call = call.arg(&settlement.key).arg(order::pack(settlement));
            call = call.arg(&settlement.count).arg(&settlement.history);
        }
        self.run(call).await?.settled()
    }
}

/// Settle reads every record before it writes one, so a key that is named again waits for a further call.
fn rounds(settlements: &[Settlement]) -> Vec<Vec<usize>> {
    let mut named: HashMap<&str, usize> = HashMap::new();
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (index, settlement) in settlements.iter().enumerate() {
        let round = named.entry(&settlement.key).and_modify(|round| *round += 1).or_default();
        if *round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*round].push(index);
    }
    rounds
}

impl Store for RedisStore {
    async fn declare(&self, class: &ClassRef) -> Result<()> {
        let limits: Vec<_> = class.budgets.iter().map(|budget| spec::of_limits(&budget.limits)).collect();
        let call = self
            .call(&scripts::DECLARE, class)
            .keys(self.budget_keys(class))
            .arg(class.max_waiting)
            .arg(serde_json::Value::from(limits).to_string());
        self.run(call).await?.ok().map(|_| ())
    }

    async fn push(&self, class: &ClassRef, jobs: &[NewJob]) -> Result<Vec<Pushed>> {
        let names = || jobs.iter().map(|job| job.key.as_str());
        let mut call = self
            .call(&scripts::PUSH, class)
            .keys(self.job_keys(class, names()))
            .keys(self.body_keys(class, names()));
        for job in jobs {
            call = call.arg(job.key.as_str()).arg(job.at_ms).arg(job.expires_at_ms).arg(job.cost);
            call = call.arg(&job.campaign).arg(&job.fingerprint).arg(&job.document);
        }
        let pushed = self.run(call).await?.pushed()?;
        self.await_replica().await;
        Ok(pushed)
    }

    async fn claim(&self, class: &ClassRef, ask: &ClaimAsk) -> Result<Claim> {
        let [jobs, bodies] = self.prefixes(class);
        let call = self
            .call(&scripts::CLAIM, class)
            .keys([self.keys.claimed(class, &ask.worker)])
            .keys(spec::budget_keys(&self.keys, class, true))
            .arg(&ask.nonce)
            .arg(ask.max_jobs)
            .arg(ask.lease_ms)
            .arg(ask.lookahead_ms)
            .arg(ask.solo_lapses)
            .arg(COUNT_TTL_S)
            .arg(jobs)
            .arg(bodies)
            .arg(spec::of_claim(class, self.clock.now_ms()));
        let claim = self.run(call).await?.claim()?;
        if matches!(claim, Claim::Jobs(_)) {
            self.await_replica().await;
        }
        Ok(claim)
    }

    async fn start(
        &self,
        class: &ClassRef,
        deadline_ms: u64,
        jobs: &[(String, [u8; 8])],
    ) -> Result<Vec<bool>> {
        let names = jobs.iter().map(|(key, _)| key.as_str());
        let mut call = self.call(&scripts::START, class).keys(self.job_keys(class, names)).arg(deadline_ms);
        for (key, birth) in jobs {
            call = call.arg(key).arg(&birth[..]);
        }
        self.run(call).await?.started()
    }

    async fn settle(
        &self,
        class: &ClassRef,
        trips: &Trips,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>> {
        let mut settled = vec![Settled::Already; settlements.len()];
        for round in rounds(settlements) {
            let batch: Vec<&Settlement> = round.iter().map(|&index| &settlements[index]).collect();
            let words = self.settle_each_once(class, trips, &batch).await?;
            round.into_iter().zip(words).for_each(|(index, word)| settled[index] = word);
        }
        Ok(settled)
    }

    async fn doubt(&self, class: &ClassRef, jobs: &[HeldJob]) -> Result<Vec<Doubted>> {
        let names = jobs.iter().map(|(key, ..)| key.as_str());
        let mut call = self.call(&scripts::DOUBT, class).keys(self.job_keys(class, names)).arg(COUNT_TTL_S);
        for (key, birth, deadline_ms) in jobs {
            call = call.arg(key).arg(&birth[..]).arg(deadline_ms);
        }
        self.run(call).await?.doubted()
    }

    async fn reap(&self, class: &ClassRef, max_jobs: usize, lease_ms: u64) -> Result<Batch> {
        let [jobs, bodies] = self.prefixes(class);
        let call = self.call(&scripts::REAP, class).arg(max_jobs).arg(lease_ms).arg(jobs).arg(bodies);
        self.run(call).await?.reaped()
    }

    async fn replay(
        &self,
        class: &ClassRef,
        pace: ReplayPace,
        jobs: &[(String, State)],
    ) -> Result<Vec<Replayed>> {
        let names = jobs.iter().map(|(key, _)| key.as_str());
        let mut call = self
            .call(&scripts::REPLAY, class)
            .keys(self.job_keys(class, names))
            .arg(pace.interval_ms)
            .arg(COUNT_TTL_S);
        for (key, state) in jobs {
            call = call.arg(key).arg(state.number());
        }
        self.run(call).await?.replayed()
    }

    async fn confirm(&self, class: &ClassRef, jobs: &[Confirmation]) -> Result<Vec<Confirmed>> {
        let names = || jobs.iter().map(|job| job.key.as_str());
        let mut call = self
            .call(&scripts::CONFIRM, class)
            .keys(self.job_keys(class, names()))
            .keys(self.body_keys(class, names()))
            .arg(COUNT_TTL_S);
        for job in jobs {
            call = call.arg(&job.key).arg(u8::from(job.accepted)).arg(&job.line);
        }
        self.run(call).await?.confirmed()
    }

    async fn cancel(&self, class: &ClassRef, keys: &[String]) -> Result<Vec<Cancelled>> {
        let names = || keys.iter().map(String::as_str);
        let mut call = self
            .call(&scripts::CANCEL, class)
            .keys(self.job_keys(class, names()))
            .keys(self.body_keys(class, names()))
            .arg(COUNT_TTL_S);
        for key in keys {
            call = call.arg(key);
        }
        self.run(call).await?.cancelled()
    }

    async fn erase(&self, class: &ClassRef, key: &str) -> Result<Erased> {
        let content = [self.keys.job(class, key), self.keys.body(class, key)];
        self.run(self.call(&scripts::ERASE, class).keys(content).arg(key)).await?.erased()
    }

    async fn sweep(
        &self,
        class: &ClassRef,
        state: State,
        older_than_ms: u64,
        max_jobs: usize,
    ) -> Result<usize> {
        if !state.is_done() {
            return Ok(0);
        }
        let [jobs, bodies] = self.prefixes(class);
        let call = self
            .call(&scripts::SWEEP, class)
            .arg(state.number())
            .arg(older_than_ms)
            .arg(max_jobs)
            .arg(jobs)
            .arg(bodies);
        self.run(call).await?.swept()
    }

    async fn hold(
        &self,
        class: &ClassRef,
        on: Held<'_>,
        cause: Option<HoldCause>,
        delay_ms: Option<u64>,
        by: &str,
    ) -> Result<()> {
        let hash = match on {
            Held::Class => self.keys.class_hash(class),
            Held::Budget(name) => self.keys.budget(class, name),
        };
        let call = self
            .call(&scripts::HOLD, class)
            .keys([hash])
            .arg(cause.map_or("", HoldCause::as_str))
            .arg(delay_ms.map_or("-1".to_owned(), |ms| ms.to_string()))
            .arg(by);
        self.run(call).await?.ok().map(|_| ())
    }

    async fn window(&self, class: &ClassRef, closed_ms: u64) -> Result<()> {
        self.run(self.call(&scripts::WINDOW, class).arg(closed_ms)).await?.ok().map(|_| ())
    }

    async fn pace(&self, class: &ClassRef, budget: &BudgetRef) -> Result<BudgetState> {
        let quotas = budget.limits.quotas.iter().map(|quota| self.keys.quota(class, &budget.name, quota));
        let spec = serde_json::Value::from(spec::quotas(&budget.limits, self.clock.now_ms())).to_string();
        let call = self
            .call(&scripts::PACE, class)
            .keys([self.keys.budget(class, &budget.name)])
            .keys(quotas)
            .arg(spec);
        self.run(call).await?.budget()
    }

    async fn adjust(&self, class: &ClassRef, budget: &BudgetRef, adjustment: &Adjustment) -> Result<bool> {
        let call = self
            .call(&scripts::ADJUST, class)
            .keys([self.keys.budget(class, &budget.name), self.keys.decisions(class, &budget.name)])
            .arg(adjustment.version)
            .arg(adjustment.rate_per_s)
            .arg(adjustment.burst)
            .arg(&adjustment.law)
            .arg(adjustment.cause.as_deref().unwrap_or_default())
            .arg(u8::from(adjustment.is_cut));
        self.run(call).await?.adjusted()
    }

    async fn limit(
        &self,
        class: &ClassRef,
        budget: &BudgetRef,
        limits: &Limits,
        by: Option<&str>,
    ) -> Result<()> {
        let call = self
            .call(&scripts::LIMIT, class)
            .keys([self.keys.budget(class, &budget.name), self.keys.decisions(class, &budget.name)])
            .arg(by.unwrap_or_default())
            .arg(spec::of_limits(limits).to_string());
        self.run(call).await?.ok().map(|_| ())
    }

    async fn explain(&self, class: &ClassRef, key: Option<&str>) -> Result<Option<Explained>> {
        let call = self
            .call(&scripts::EXPLAIN, class)
            .keys(spec::budget_keys(&self.keys, class, true))
            .keys([self.keys.job(class, key.unwrap_or_default())])
            .arg(spec::of_claim(class, self.clock.now_ms()))
            .arg(key.unwrap_or_default());
        self.run(call).await?.explained()
    }

    async fn reconcile(&self, class: &ClassRef, jobs: &[Reconcile]) -> Result<Vec<Reconciled>> {
        let names = || jobs.iter().map(|job| job.key.as_str());
        let mut call = self
            .call(&scripts::RECONCILE, class)
            .keys(self.job_keys(class, names()))
            .keys(self.body_keys(class, names()))
            .arg(COUNT_TTL_S);
        for job in jobs {
            let (seen, target) = job
                .mend
                .as_ref()
                .map_or((&[][..], 0), |(seen, target)| (seen, target.map_or(0, State::number)));
            call = call.arg(&job.key).arg(seen).arg(target);
        }
        self.run(call).await?.reconciled(jobs)
    }

    async fn get(&self, class: &ClassRef, key: &str) -> Result<Option<Stored>> {
        let content = [self.keys.job(class, key), self.keys.body(class, key)];
        self.run(self.call(&scripts::GET, class).keys(content).arg(key)).await?.stored(key)
    }

    async fn depths(&self, class: &ClassRef) -> Result<Depths> {
        let call = self.call(&scripts::DEPTHS, class).keys(self.budget_keys(class));
        self.run(call).await?.depths()
    }

    async fn list(
        &self,
        class: &ClassRef,
        state: State,
        after: &Cursor,
        max_jobs: usize,
    ) -> Result<Vec<Listed>> {
        let call = self
            .call(&scripts::LIST, class)
            .arg(state.number())
            .arg(after.score_ms)
            .arg(&after.key)
            .arg(max_jobs)
            .arg(self.keys.job(class, ""));
        self.run(call).await?.listed()
    }
}
