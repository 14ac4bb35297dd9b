//! `settle.lua`, with `part/late.lua`.

use super::card::{Card, last_attempt};
use super::hold::{Sender, extend};
use super::world::World;
use crate::keys::ClassRef;
use crate::movement::*;
use paceline_core::State;
use paceline_core::decide::{HoldCause, HoldOn, Signal};
use paceline_core::policy::Trips;

/// The birth of a record that could not be read.
const UNREAD: [u8; 8] = [0; 8];

impl World {
    pub(super) fn settle(
        &mut self,
        class: &ClassRef,
        trips: &Trips,
        settlements: &[Settlement],
    ) -> Vec<Settled> {
        settlements.iter().map(|one| self.settle_one(class, trips, one)).collect()
    }

    fn settle_one(&mut self, class: &ClassRef, trips: &Trips, one: &Settlement) -> Settled {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        let mine = jobs.place(&one.key) == Some((State::InFlight, one.deadline_ms));
        let card = jobs.card(&one.key).cloned();
        if mine && (card.is_none() || one.birth == UNREAD) {
            jobs.put(&one.key, State::Deferred, now_ms, now_ms);
            jobs.count(now_ms, "|parked|deferred", 1);
            return Settled::Parked;
        }
        match card {
            Some(card) if card.job.birth == one.birth => {
                if mine {
                    return self.live(class, trips, one, card);
                }
                if card.last_settled_ms != one.deadline_ms {
                    return self.late(class, trips, one, card);
                }
                jobs.count(now_ms, "|already|", 1);
                Settled::Already
            }
            _ => {
                jobs.count(now_ms, "|gone|", 1);
                Settled::Gone
            }
        }
    }

    /// The lease stands: the decision is carried out.
    fn live(&mut self, class: &ClassRef, trips: &Trips, one: &Settlement, mut card: Card) -> Settled {
        let (now_ms, decision) = (self.now_ms, &one.decision);
        let suspect =
            self.sender(class).credential.hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::Suspect);
        if decision.signal == Signal::Refused && suspect && !one.decided_again {
            return Settled::Held(HoldCause::Suspect);
        }
        if one.probed {
            self.probe_is_back(class);
        }
        let cost = f64::from(card.job.cost);
        let (signal, crowded) = self.weigh(class, trips, one);
        if !one.decided_again {
            self.sender(class).hear(signal, now_ms, one.claimed_ms, trips);
        }
        self.hear_pace(class, signal, cost, one.claimed_ms);
        if crowded {
            self.order_hold(class, one);
        }
        if decision.refund {
            self.refund(class, cost, one.claimed_ms);
        }
        let target = card.apply(one, now_ms);
        let score = if target.is_waiting() { now_ms + decision.delay_ms } else { now_ms };
        card.keep_for(target, &one.history);
        self.write(class, one, card, target, score);
        Settled::Moved(target)
    }

    /// The lease was lost. An acceptance is never thrown away.
    fn late(&mut self, class: &ClassRef, trips: &Trips, one: &Settlement, mut card: Card) -> Settled {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        if one.decision.target != State::Submitted {
            jobs.count(now_ms, "|stale|", 1);
            return Settled::Stale;
        }
        card.last_settled_ms = one.deadline_ms;
        let (state, attempt) = (jobs.state_of(&one.key), last_attempt(&one.history));
        if state == Some(State::Submitted) {
            let id = attempt.as_ref().and_then(|attempt| attempt.message_id.clone());
            let known = card.job.history.attempts().iter().any(|other| other.message_id == id);
            let twice = id.is_some() && !known;
            attempt.filter(|_| twice).into_iter().for_each(|attempt| card.job.history.push(attempt));
            jobs.write(&one.key, card);
            jobs.count(now_ms, if twice { "|twice|submitted" } else { "|already|submitted" }, 1);
            return if twice { Settled::Twice } else { Settled::Already };
        }
        let cost = f64::from(card.job.cost);
        card.job.counters.attempts = card.job.counters.attempts.wrapping_add(1);
        card.job.flags.late = true;
        card.job.sent_since_ms.get_or_insert(now_ms);
        card.keep_for(State::Submitted, &one.history);
        let from = state.unwrap_or(State::InFlight);
        self.write(class, one, card, State::Submitted, now_ms);
        self.line(class).jobs.count(now_ms, &format!("|late|{from}"), 1);
        self.sender(class).hear(one.decision.signal, now_ms, one.claimed_ms, trips);
        self.hear_pace(class, one.decision.signal, cost, one.claimed_ms);
        Settled::Late(from)
    }

    fn write(&mut self, class: &ClassRef, one: &Settlement, card: Card, target: State, score: u64) {
        let now_ms = self.now_ms;
        let jobs = &mut self.line(class).jobs;
        jobs.write(&one.key, card);
        jobs.put(&one.key, target, score, now_ms);
        jobs.count(now_ms, &format!("{}|{target}", one.count), 1);
    }

    fn sender(&mut self, class: &ClassRef) -> Sender<'_> {
        let (line, credential) = self.line_and_credential(class);
        Sender { class_hold: &mut line.hold, terminal_run: &mut line.terminal_run, credential }
    }

    /// What the end says once recipients are counted, and whether its hold is to be put.
    fn weigh(&mut self, class: &ClassRef, trips: &Trips, one: &Settlement) -> (Signal, bool) {
        let (now_ms, signal) = (self.now_ms, one.decision.signal);
        if signal != Signal::RecipientThrottled {
            return (signal, true);
        }
        let credential = self.sender(class).credential;
        let crowded = credential.is_crowded(&one.key, now_ms, trips.recipient_run, trips.recipient_window_ms);
        (if crowded { Signal::Throttled } else { Signal::Answered }, crowded)
    }

    /// The sums that the law reads.
    fn hear_pace(&mut self, class: &ClassRef, signal: Signal, cost: f64, claimed_ms: u64) {
        let now_ms = self.now_ms;
        let account = usize::from(signal == Signal::AccountThrottled && class.budgets.len() > 1);
        for (index, at) in class.budgets.iter().enumerate() {
            let budget = self.budget(class, &at.name);
            match signal {
                Signal::Clean => budget.hear_accepted(cost, now_ms.saturating_sub(claimed_ms)),
                Signal::Throttled | Signal::AccountThrottled if index == account => {
                    budget.hear_throttled(claimed_ms);
                }
                _ => {}
            }
        }
    }

    fn refund(&mut self, class: &ClassRef, cost: f64, claimed_ms: u64) {
        let now_us = self.now_us();
        for at in &class.budgets {
            self.budget(class, &at.name).give_back(&at.limits, cost, claimed_ms, now_us);
        }
    }

    /// The next probe may go.
    fn probe_is_back(&mut self, class: &ClassRef) {
        self.line(class).hold.iter_mut().for_each(|hold| hold.out_until_ms = 0);
        for at in &class.budgets {
            self.budget(class, &at.name).hold.iter_mut().for_each(|hold| hold.out_until_ms = 0);
        }
    }

    /// The hold that a decision orders; the account's is the credential's where there is no account.
    fn order_hold(&mut self, class: &ClassRef, one: &Settlement) {
        let (now_ms, Some(order)) = (self.now_ms, one.decision.hold) else { return };
        if order.on == HoldOn::Class {
            extend(&mut self.line(class).hold, now_ms, order.cause, order.delay_ms, order.probe_ms);
            return;
        }
        let at = if order.on == HoldOn::Account { class.budgets.last() } else { class.budgets.first() };
        let Some(at) = at else { return };
        let budget = self.budget(class, &at.name);
        let is_new = extend(&mut budget.hold, now_ms, order.cause, order.delay_ms, order.probe_ms);
        if is_new && order.cause == HoldCause::RetryAfter {
            budget.begin_episode(now_ms, one.claimed_ms);
        }
    }
}
