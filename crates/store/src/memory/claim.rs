//! What gives and takes leases: `claim.lua`, `start.lua`, `reap.lua`.

use super::budget::Bucket;
use super::hold::{Standing, extend};
use super::jobs::Jobs;
use super::world::{LastClaim, World};
use crate::error::StoreError;
use crate::keys::{BudgetRef, ClassRef};
use crate::movement::*;
use paceline_core::State;
use paceline_core::decide::Probe;

/// What a claim picked from the due heads.
struct Picked {
    /// Keys and offsets.
    taken: Vec<(String, u64)>,
    /// Expired.
    gone: Vec<String>,
    /// How long the job that ended it waits for its tokens; 0: it does not.
    wait_ms: f64,
    deadline_ms: u64,
}

impl World {
    pub(super) fn claim(&mut self, class: &ClassRef, ask: &ClaimAsk) -> Result<Claim> {
        if let Some(batch) = self.repeated(class, ask) {
            return Ok(Claim::Jobs(batch));
        }
        let now_us = self.now_us();
        let (mut buckets, mut room) = (Vec::new(), ask.max_jobs as u64);
        for budget in &class.budgets {
            let bucket = self.budget(class, &budget.name).bucket(now_us);
            buckets.push(bucket.ok_or(StoreError::Undeclared)?);
            room = room.min(self.room_in_flight(class, budget));
        }
        if let Some(wait) = self.silence(class) {
            return Ok(wait);
        }
        if room < 1 {
            return Ok(Claim::Wait { ms: None, term: "max_in_flight".into() });
        }
        let probe = self.probe(class);
        let room = if probe.is_some() { 1 } else { room as usize };
        Ok(self.take(class, ask, probe, room, buckets))
    }

    fn take(
        &mut self,
        class: &ClassRef,
        ask: &ClaimAsk,
        probe: Option<Probe>,
        room: usize,
        mut buckets: Vec<Bucket>,
    ) -> Claim {
        let now_ms = self.now_ms;
        let heads = due_heads(&self.line(class).jobs, now_ms, room);
        let picked = pick(&self.line(class).jobs, &heads, ask, now_ms, &mut buckets);
        picked.gone.iter().for_each(|key| self.expire(class, key));
        let wait_ms = picked.wait_ms.ceil() as u64;
        if picked.taken.is_empty() && wait_ms > 0 {
            return Claim::Wait { ms: Some(wait_ms), term: "rate".into() };
        }
        if picked.taken.is_empty() {
            let next_ms = if picked.gone.is_empty() { self.next_due(class) } else { Some(0) };
            return Claim::Empty { next_ms };
        }
        self.lease(class, ask, probe, &picked);
        for (budget, bucket) in class.budgets.iter().zip(&buckets) {
            self.budget(class, &budget.name).write(bucket);
        }
        self.extend_probes(class);
        let next_ms = match wait_ms {
            0 if heads.len() < room => self.next_due(class),
            wait_ms => Some(wait_ms),
        };
        let jobs = &self.line(class).jobs;
        let jobs = picked.taken.into_iter().map(|(key, offset_ms)| claimed(jobs, key, offset_ms)).collect();
        Claim::Jobs(Batch { now_ms, deadline_ms: picked.deadline_ms, next_ms, probe, jobs })
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

    /// `part/gate.lua`
    fn room_in_flight(&self, class: &ClassRef, budget: &BudgetRef) -> u64 {
        let declared = self.budget_limits(class, &budget.name).map_or(0, |limits| limits.max_in_flight);
        if declared == 0 {
            return u64::MAX;
        }
        let spenders = if budget.limits.max_in_flight == 0 { &[][..] } else { &budget.spenders };
        let unexpired = |spender| {
            let jobs = self.neighbour(class, spender).map(|line| &line.jobs);
            jobs.map_or(0, |jobs| jobs.all(State::InFlight).filter(|(_, ends)| *ends >= self.now_ms).count())
        };
        u64::from(declared).saturating_sub(spenders.iter().map(unexpired).sum::<usize>() as u64)
    }

    /// The hold that silences the class, the class's own first.
    fn silence(&mut self, class: &ClassRef) -> Option<Claim> {
        let now_ms = self.now_ms;
        self.holds(class).flatten().find(|hold| hold.is_silent(now_ms)).map(|hold| Claim::Wait {
            ms: hold.until_ms.map(|until_ms| until_ms - now_ms),
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
    fn extend_probes(&mut self, class: &ClassRef) {
        let now_ms = self.now_ms;
        let again = |slot: &mut Option<Standing>| {
            if let Some(hold) = slot.clone().filter(|hold| hold.is_in_force(now_ms)) {
                extend(slot, now_ms, hold.cause, hold.probe_ms, hold.probe_ms);
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
    fn next_due(&mut self, class: &ClassRef) -> Option<u64> {
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

/// The due heads of queued and pending, older first, queued first where they are of one age.
fn due_heads(jobs: &Jobs, now_ms: u64, max: usize) -> Vec<String> {
    let mut heads: Vec<(u64, State, &str)> = [State::Queued, State::Pending]
        .into_iter()
        .flat_map(|state| jobs.due(state, now_ms).take(max).map(move |(key, at_ms)| (at_ms, state, key)))
        .collect();
    heads.sort_unstable();
    heads.into_iter().take(max).map(|(_, _, key)| key.to_owned()).collect()
}

/// Goes through the heads until one has to wait.
fn pick(jobs: &Jobs, heads: &[String], ask: &ClaimAsk, now_ms: u64, buckets: &mut [Bucket]) -> Picked {
    let mut picked =
        Picked { taken: Vec::new(), gone: Vec::new(), wait_ms: 0.0, deadline_ms: now_ms + ask.lease_ms };
    for key in heads {
        let card = jobs.card(key);
        if card.is_some_and(|card| card.has_expired(now_ms)) {
            picked.gone.push(key.clone());
            continue;
        }
        let cost = card.map_or(1.0, |card| f64::from(card.job.cost));
        let solo = card.is_some_and(|card| card.job.counters.lapses >= ask.solo_lapses);
        picked.wait_ms = buckets.iter().map(|bucket| bucket.wait_ms(cost)).fold(picked.wait_ms, f64::max);
        let patience_ms = if picked.taken.is_empty() { 0 } else { ask.lookahead_ms };
        if solo && !picked.taken.is_empty() || picked.wait_ms > patience_ms as f64 {
            break;
        }
        buckets.iter_mut().for_each(|bucket| bucket.take(cost));
        picked.taken.push((key.clone(), picked.wait_ms.ceil() as u64));
        picked.wait_ms = 0.0;
        // A lease never has the token of one that was settled: a repeat of that settle must find `already`.
        picked.deadline_ms = picked.deadline_ms.max(card.map_or(0, |card| card.last_settled_ms) + 1);
        if solo {
            break;
        }
    }
    picked
}
