//! What gives and takes leases: `claim.lua`, `start.lua`, `reap.lua`.

use super::bucket::Bucket;
use super::hold::{Standing, extend};
use super::jobs::Jobs;
use super::world::{LastClaim, World};
use crate::error::StoreError;
use crate::keys::{BudgetRef, ClassRef, Spender};
use crate::movement::*;
use paceline_core::State;
use paceline_core::budget::SHARING;
use paceline_core::decide::Probe;

/// What a claim picked from the due heads.
struct Picked {
    /// Keys and offsets.
    taken: Vec<(String, u64)>,
    /// The retry credit after the last of them.
    credit: Option<f64>,
    /// How long the job that ended it waits; 0: it does not.
    wait_ms: f64,
    /// The term that makes it wait, and the budget whose tokens it waits for.
    term: &'static str,
    bound: Option<usize>,
    deadline_ms: u64,
}

/// A due job, with the retry credit after it.
struct Head {
    key: String,
    credit: f64,
}

impl World {
    pub(super) fn claim(&mut self, class: &ClassRef, ask: &ClaimAsk) -> Result<Claim> {
        if let Some(batch) = self.repeated(class, ask) {
            return Ok(Claim::Jobs(batch));
        }
        let buckets = self.buckets(class).ok_or(StoreError::Undeclared)?;
        let (room, full) = self.room(class, &buckets);
        let shut = self.silence(class).or(full);
        let probe = self.probe(class).filter(|_| shut.is_none());
        let room = if probe.is_some() { 1 } else { room.min(ask.max_jobs as u64) as usize };
        let wanted = if shut.is_some() { ask.max_jobs } else { room.min(affordable(&buckets, ask)) };
        let credit = buckets[0].credit;
        let (heads, gone) = self.unexpired_heads(class, wanted, credit);
        match shut {
            Some(_) if gone > 0 => Ok(Claim::Empty { next_ms: Some(0) }),
            Some(wait) => Ok(wait),
            None => Ok(self.take(class, ask, probe, (&heads, gone, wanted), buckets)),
        }
    }

    /// The budgets of a class as they are now; `None` where one is not declared.
    pub(super) fn buckets(&self, class: &ClassRef) -> Option<Vec<Bucket>> {
        let read =
            |at: &BudgetRef| Bucket::read(self.known_budget(class, &at.name)?, at, &class.class, self.now_ms);
        class.budgets.iter().map(read).collect()
    }

    /// `expire_heads`: what is left of the due heads, and how many had expired.
    fn unexpired_heads(&mut self, class: &ClassRef, wanted: usize, credit: f64) -> (Vec<Head>, usize) {
        let now_ms = self.now_ms;
        let jobs = &self.line(class).jobs;
        let heads = due_heads(jobs, now_ms, wanted, credit);
        let expired = |head: &Head| jobs.card(&head.key).is_some_and(|card| card.has_expired(now_ms));
        let (gone, left): (Vec<_>, Vec<_>) = heads.into_iter().partition(expired);
        gone.iter().for_each(|head| self.expire(class, &head.key));
        (left, gone.len())
    }

    fn take(
        &mut self,
        class: &ClassRef,
        ask: &ClaimAsk,
        probe: Option<Probe>,
        (heads, gone, wanted): (&[Head], usize, usize),
        mut buckets: Vec<Bucket>,
    ) -> Claim {
        let now_ms = self.now_ms;
        let picked = pick(&self.line(class).jobs, heads, ask, now_ms, &mut buckets);
        self.write_spending(class, &buckets, &picked);
        let wait_ms = picked.wait_ms.ceil() as u64;
        if picked.taken.is_empty() && wait_ms > 0 {
            return Claim::Wait { ms: Some(wait_ms), term: picked.term.into() };
        }
        if picked.taken.is_empty() {
            let next_ms = if gone == 0 { self.next_due(class) } else { Some(0) };
            return Claim::Empty { next_ms };
        }
        self.lease(class, ask, probe, &picked);
        self.extend_probes(class, picked.deadline_ms);
        let next_ms = match wait_ms {
            0 if heads.len() + gone < wanted => self.next_due(class),
            wait_ms => Some(wait_ms),
        };
        let jobs = &self.line(class).jobs;
        let jobs = picked.taken.into_iter().map(|(key, offset_ms)| claimed(jobs, key, offset_ms)).collect();
        Claim::Jobs(Batch { now_ms, deadline_ms: picked.deadline_ms, next_ms, probe, jobs })
    }

    fn write_spending(&mut self, class: &ClassRef, buckets: &[Bucket], picked: &Picked) {
        let now_ms = self.now_ms;
        for (index, (at, bucket)) in class.budgets.iter().zip(buckets).enumerate() {
            let bound_ms = (picked.bound == Some(index)).then_some(picked.wait_ms);
            let budget = self.budget(class, &at.name);
            bucket.write(budget, now_ms, bound_ms);
            if let Some(credit) = picked.credit.filter(|_| index == 0) {
                budget.retry_credit = credit;
            }
        }
    }

    /// `part/repeat.lua`: those of the batch whose lease still stands.
    fn repeated(&mut self, class: &ClassRef, ask: &ClaimAsk) -> Option<Batch> {
        let now_ms = self.now_ms;
        let line = self.line(class);
        let last = line.claims.get(&ask.worker)?;
        if last.nonce != ask.nonce || now_ms > last.kept_until_ms {
            return None;
        }
        let lease = (State::InFlight, last.deadline_ms);
        let stands = |key: &&String| line.jobs.place(key) == Some(lease) && last.deadline_ms > now_ms;
        let jobs = last.keys.iter().filter(stands).map(|key| claimed(&line.jobs, key.clone(), 0)).collect();
        Some(Batch { now_ms, deadline_ms: last.deadline_ms, next_ms: Some(0), probe: last.probe, jobs })
    }

    /// `room_of`: how many may go before tokens are asked for, and the answer where that is none.
    pub(super) fn room(&self, class: &ClassRef, buckets: &[Bucket]) -> (u64, Option<Claim>) {
        let (mut room, mut answer) = (f64::INFINITY, None);
        for (at, bucket) in class.budgets.iter().zip(buckets) {
            let free = self.room_in_flight(class, at);
            if free < 1.0 && answer.is_none() {
                answer = Some(Claim::Wait { ms: None, term: "max_in_flight".into() });
            }
            let least =
                bucket.quotas.iter().reduce(|least, one| if one.left < least.left { one } else { least });
            if let Some(least) = least.filter(|least| least.left < 1.0 && answer.is_none()) {
                answer = Some(Claim::Wait { ms: Some(least.wait_ms as u64), term: "quota".into() });
            }
            room = room.min(free).min(least.map_or(f64::INFINITY, |least| least.left)).max(0.0);
        }
        (room as u64, answer)
    }

    fn room_in_flight(&self, class: &ClassRef, at: &BudgetRef) -> f64 {
        let pace = self.known_budget(class, &at.name).and_then(|budget| budget.pace);
        let Some(most) = pace.map(|pace| pace.max_in_flight).filter(|&most| most > 0) else {
            return f64::INFINITY;
        };
        let spenders = if at.limits.max_in_flight == 0 { &[][..] } else { &at.spenders };
        let unexpired = |spender: &Spender| {
            let jobs = self.neighbour(class, &spender.class).map(|line| &line.jobs);
            jobs.map_or(0, |jobs| jobs.all(State::InFlight).filter(|(_, ends)| *ends >= self.now_ms).count())
        };
        f64::from(most) - spenders.iter().map(unexpired).sum::<usize>() as f64
    }

    /// The hold that silences the class, the class's own first.
    pub(super) fn silence(&self, class: &ClassRef) -> Option<Claim> {
        let now_ms = self.now_ms;
        let silent = |hold: &&Standing| hold.is_silent(now_ms) || hold.out_until_ms > now_ms;
        self.holds(class).flatten().find(silent).map(|hold| Claim::Wait {
            ms: hold.until_ms.map(|until_ms| until_ms.max(hold.out_until_ms) - now_ms),
            term: format!("hold:{}", hold.cause),
        })
    }

    /// The first hold that lets one job through.
    fn probe(&mut self, class: &ClassRef) -> Option<Probe> {
        let now_ms = self.now_ms;
        let probed = self.holds(class).flatten().find(|hold| hold.is_in_force(now_ms))?;
        Some(Probe { cause: probed.cause, interval_ms: probed.probe_ms })
    }

    /// A probe went: every hold that let it through stands again.
    fn extend_probes(&mut self, class: &ClassRef, deadline_ms: u64) {
        let now_ms = self.now_ms;
        let again = |slot: &mut Option<Standing>| {
            if let Some(hold) = slot.clone().filter(|hold| hold.is_in_force(now_ms)) {
                extend(slot, now_ms, hold.cause, hold.probe_ms, hold.probe_ms);
                slot.iter_mut().for_each(|hold| hold.out_until_ms = deadline_ms);
            }
        };
        again(&mut self.line(class).hold);
        for budget in &class.budgets {
            again(&mut self.budget(class, &budget.name).hold);
        }
    }

    fn lease(&mut self, class: &ClassRef, ask: &ClaimAsk, probe: Option<Probe>, picked: &Picked) {
        let now_ms = self.now_ms;
        let line = self.line(class);
        let keys: Vec<String> = picked.taken.iter().map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| line.jobs.put(key, State::InFlight, picked.deadline_ms, now_ms));
        let last = LastClaim {
            nonce: ask.nonce.clone(),
            deadline_ms: picked.deadline_ms,
            kept_until_ms: now_ms + ask.lease_ms,
            probe,
            keys,
        };
        line.claims.insert(ask.worker.clone(), last);
    }

    /// `part/expire.lua`: without token or slot.
    fn expire(&mut self, class: &ClassRef, key: &str) {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        let Some(card) = jobs.card_mut(key) else { return };
        let target = if card.job.flags.ambiguous { State::Unconfirmed } else { State::Expired };
        if target == State::Expired {
            card.shrink_to_last();
        }
        jobs.put(key, target, now_ms, now_ms);
        jobs.count(now_ms, &format!("|expired|{target}"), 1);
    }

    /// How long until something is due.
    pub(super) fn next_due(&mut self, class: &ClassRef) -> Option<u64> {
        let now_ms = self.now_ms;
        let jobs = &self.line(class).jobs;
        let first = |state| jobs.all(state).next().map(|(_, at_ms)| at_ms);
        [State::Queued, State::Pending]
            .into_iter()
            .filter_map(first)
            .min()
            .map(|at_ms| at_ms.saturating_sub(now_ms))
    }

    /// `start.lua`
    pub(super) fn start(
        &mut self,
        class: &ClassRef,
        deadline_ms: u64,
        marks: &[(String, [u8; 8])],
    ) -> Vec<bool> {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        let mut start = |(key, birth): &(String, [u8; 8])| {
            let mine = jobs.place(key) == Some((State::InFlight, deadline_ms)) && deadline_ms > now_ms;
            match jobs.card_mut(key) {
                Some(card) if mine && card.job.birth == *birth => {
                    card.job.flags.started = true;
                    true
                }
                _ => false,
            }
        };
        marks.iter().map(&mut start).collect()
    }

    /// `reap.lua`
    pub(super) fn reap(&mut self, class: &ClassRef, max_jobs: usize, lease_ms: u64) -> Batch {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        let keys = jobs.due_keys(State::InFlight, now_ms, max_jobs);
        let after = |key: &String| jobs.card(key).map_or(0, |card| card.last_settled_ms) + 1;
        let deadline_ms = keys.iter().map(after).fold(now_ms + lease_ms, u64::max);
        keys.iter().for_each(|key| jobs.put(key, State::InFlight, deadline_ms, now_ms));
        let jobs = keys.into_iter().map(|key| claimed(jobs, key, 0)).collect();
        Batch { now_ms, deadline_ms, next_ms: None, probe: None, jobs }
    }
}

fn claimed(jobs: &Jobs, key: String, offset_ms: u64) -> Claimed {
    Claimed { record: jobs.record(&key), key, offset_ms }
}

/// The due heads of queued and pending. With retry credit the older of both goes; without it first attempts go, and
/// retries only when no first attempt is due.
fn due_heads(jobs: &Jobs, now_ms: u64, max: usize, mut credit: f64) -> Vec<Head> {
    let mut first = jobs.due(State::Queued, now_ms).peekable();
    let mut retries = jobs.due(State::Pending, now_ms).peekable();
    let mut heads = Vec::new();
    while heads.len() < max {
        let takes_first = match (first.peek(), retries.peek()) {
            (Some((_, first_ms)), Some((_, retry_ms))) => credit < 1.0 || first_ms <= retry_ms,
            (first, _) => first.is_some(),
        };
        let next = if takes_first { first.next() } else { retries.next() };
        let Some((key, _)) = next else { break };
        credit = if takes_first {
            (credit + SHARING.credit_per_first).min(SHARING.credit_most)
        } else {
            (credit - 1.0).max(0.0)
        };
        heads.push(Head { key: key.to_owned(), credit });
    }
    heads
}

/// `affordable`: what tokens could pay for, and one more, which tells how long the next has to wait.
fn affordable(buckets: &[Bucket], ask: &ClaimAsk) -> usize {
    let most = buckets.iter().map(|bucket| bucket.affordable(ask.lookahead_ms)).fold(f64::INFINITY, f64::min);
    most.floor().max(0.0) as usize + 1
}

/// The longest wait of a job of that cost, the term that binds, and the budget whose tokens it waits for.
pub(super) fn wait_of(buckets: &[Bucket], cost: f64) -> (f64, &'static str, Option<usize>) {
    let unfit = buckets.iter().flat_map(|bucket| &bucket.quotas).find(|quota| !quota.fits(cost));
    if let Some(quota) = unfit {
        return (quota.wait_ms, "quota", None);
    }
    let mut longest = (0.0, "rate", None);
    for (index, bucket) in buckets.iter().enumerate() {
        let (ms, term) = bucket.wait_ms(cost);
        if ms > longest.0 {
            longest = (ms, term, Some(index));
        }
    }
    longest
}

/// Goes through the heads until one has to wait.
fn pick(jobs: &Jobs, heads: &[Head], ask: &ClaimAsk, now_ms: u64, buckets: &mut [Bucket]) -> Picked {
    let deadline_ms = now_ms + ask.lease_ms;
    let mut picked =
        Picked { taken: Vec::new(), credit: None, wait_ms: 0.0, term: "rate", bound: None, deadline_ms };
    for head in heads {
        let card = jobs.card(&head.key);
        let cost = card.map_or(1.0, |card| f64::from(card.job.cost));
        let solo = card.is_some_and(|card| card.job.counters.lapses >= ask.solo_lapses);
        (picked.wait_ms, picked.term, picked.bound) = wait_of(buckets, cost);
        let patience_ms = if picked.taken.is_empty() { 0 } else { ask.lookahead_ms };
        if solo && !picked.taken.is_empty() || picked.wait_ms > patience_ms as f64 {
            break;
        }
        buckets.iter_mut().for_each(|bucket| bucket.take(cost));
        picked.taken.push((head.key.clone(), picked.wait_ms.ceil() as u64));
        (picked.credit, picked.wait_ms, picked.bound) = (Some(head.credit), 0.0, None);
        // A lease never has the token of one that was settled: a repeat of that settle must find `already`.
        picked.deadline_ms = picked.deadline_ms.max(card.map_or(0, |card| card.last_settled_ms) + 1);
        if solo {
            break;
        }
    }
    picked
}
