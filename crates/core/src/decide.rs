//! The whole of retry, throttle, fail and dead-letter: one pure function.

use crate::job::{Counters, Flags, Job};
use crate::outcome::{Outcome, Scope};
use crate::policy::{OnAmbiguous, Policy};
use crate::state::State;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Why a class or budget is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldCause {
    /// A person paused it.
    Pause,
    /// The remote side named a wait.
    RetryAfter,
    /// An allowance is used up.
    Quota,
    /// The key or the destination is probably wrong.
    Suspect,
    /// The remote side does not answer.
    Outage,
    /// Outside its send window.
    Window,
}

impl HoldCause {
    /// Every cause.
    pub const ALL: [Self; 6] =
        [Self::Pause, Self::RetryAfter, Self::Quota, Self::Suspect, Self::Outage, Self::Window];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::RetryAfter => "retry_after",
            Self::Quota => "quota",
            Self::Suspect => "suspect",
            Self::Outage => "outage",
            Self::Window => "window",
        }
    }

    /// The cause of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == word)
    }
}

impl fmt::Display for HoldCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a hold silences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HoldOn {
    /// The class alone.
    Class,
    /// The credential's budget, and so every class that spends from it.
    Credential,
    /// The account's budget, where there is one; else the credential's.
    Account,
}

/// An order to hold a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldOrder {
    /// What it silences.
    pub on: HoldOn,
    /// Why.
    pub cause: HoldCause,
    /// For how long from now, in ms.
    pub delay_ms: u64,
    /// Above zero: at its end one probe goes and the hold stands for this long again, until released.
    pub probe_ms: u64,
}

/// What an attempt's end says about the sender; settle counts runs of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Signal {
    /// Nothing was sent, or nothing is to be learned.
    None = 0,
    /// Accepted: every run ends and automatic holds that probe are released.
    Clean = 1,
    /// The remote side is there and says "not right now" to this credential.
    Throttled = 2,
    /// Transient or ambiguous: feeds the outage.
    Failing = 3,
    /// The sender was refused: feeds the suspect credential.
    Refused = 4,
    /// Terminal: feeds the suspect class.
    Terminal = 5,
    /// As throttled, of the account.
    AccountThrottled = 6,
    /// As throttled, of one recipient: the job waits and the sender does not, until so many recipients say it that
    /// it is about the credential. Its hold is put only then.
    RecipientThrottled = 7,
    /// The remote side is there, and it is no matter of pace.
    Answered = 8,
}

/// A probe under a hold that was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The hold it probes.
    pub cause: HoldCause,
    /// The hold's present interval between probes, in ms.
    pub interval_ms: u64,
}

/// What the attempt met at the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// This attempt was a probe.
    pub probe: Option<Probe>,
    /// A hold that came into force while this attempt was under way (settle answered `held`).
    pub hold: Option<HoldCause>,
}

/// Two draws in `[0, 1)`: one spreads jobs behind a named wait, one jitters the backoff.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draws {
    /// Spreads jobs behind a named wait.
    pub spread: f64,
    /// Jitters the backoff.
    pub jitter: f64,
}

/// What to do about an attempt's end. A script carries it out and knows no reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Where the job goes.
    pub target: State,
    /// Where it goes instead if it was cancelled in flight.
    pub cancelled_target: State,
    /// Time until the next attempt, in ms; 0 outside queued and pending.
    pub delay_ms: u64,
    /// The job's counters from now on.
    pub counters: Counters,
    /// The job's marks from now on; `cancel` is the store's.
    pub flags: Flags,
    /// Start the throttle horizon now, if it is not running.
    pub starts_throttle: bool,
    /// The remote side may have seen the send id: start its window now, if it is not running.
    pub starts_window: bool,
    /// What the end says about the sender.
    pub signal: Signal,
    /// A hold to put on the sender.
    pub hold: Option<HoldOrder>,
    /// Give the tokens back: nothing was sent.
    pub refund: bool,
    /// Why, in words for the attempt record.
    pub reason: Cow<'static, str>,
}

/// Turns an outcome into a decision. Pure: the same arguments give the same answer for ever.
///
/// `now_ms` is Redis's clock; it is compared only with instants that came from it.
pub fn decide(
    job: &Job,
    outcome: &Outcome,
    policy: &Policy,
    seen: Seen,
    now_ms: u64,
    draws: Draws,
) -> Decision {
    let case = Case { job, policy, seen, now_ms, draws };
    match outcome {
        Outcome::Accepted { .. } => case.accepted(),
        Outcome::Throttled { retry_after_ms, scope } => case.throttled(*retry_after_ms, *scope),
        Outcome::QuotaSpent { retry_after_ms } => case.quota_spent(*retry_after_ms),
        Outcome::Transient { reason, retry_after_ms } => case.transient(reason.clone(), *retry_after_ms),
        Outcome::Ambiguous { .. } if outcome.is_lapse() => case.lapsed(),
        Outcome::Ambiguous { .. } if outcome.is_cut_short() => case.cut_short(),
        Outcome::Ambiguous { reason, retry_after_ms } => case.ambiguous(reason.clone(), *retry_after_ms),
        Outcome::Terminal { reason } => case.terminal(reason.clone()),
        Outcome::SenderRefused { reason } => case.sender_refused(reason.clone()),
        Outcome::Unknown { code, retry_after_ms } => case.unknown(code, *retry_after_ms),
        Outcome::Invalid { reason } => case.invalid(reason.clone()),
        Outcome::NotSent { .. } if outcome.is_lapse() => case.lapsed_unsent(),
        Outcome::NotSent { reason } => case.not_sent(reason.clone()),
    }
}

/// The arguments of one call, so that each outcome is a short method.
struct Case<'a> {
    job: &'a Job,
    policy: &'a Policy,
    seen: Seen,
    now_ms: u64,
    draws: Draws,
}

impl Case<'_> {
    /// The end of an attempt that was on the wire, going to `target`.
    fn end(&self, target: State, signal: Signal, reason: impl Into<Cow<'static, str>>) -> Decision {
        let counters =
            Counters { attempts: self.job.counters.attempts.saturating_add(1), ..self.job.counters };
        let flags = Flags { started: false, ..self.job.flags };
        Decision {
            target,
            cancelled_target: if flags.ambiguous { State::Unconfirmed } else { State::Cancelled },
            delay_ms: 0,
            counters,
            flags,
            starts_throttle: false,
            starts_window: true,
            signal,
            hold: None,
            refund: false,
            reason: reason.into(),
        }
    }

    /// Back to pending, no earlier than asked, bounded by the hourly cap and by its own expiry.
    fn again(&self, mut decision: Decision, asked_ms: Option<u64>) -> Decision {
        let run = decision.counters.run;
        let own_ms = self.policy.backoff.delay_ms(run, asked_ms, self.draws.spread, self.draws.jitter);
        let hourly_ms = self.job.history.hourly_wait_ms(self.policy.tries_per_hour, self.now_ms);
        decision.counters.run = run.saturating_add(1);
        decision.target = State::Pending;
        decision.delay_ms = self.until_expiry(own_ms.max(hourly_ms).min(MAX_DELAY_MS));
        decision
    }

    /// A job that expires before its next attempt is looked at when it expires, not hours later.
    fn until_expiry(&self, delay_ms: u64) -> u64 {
        self.job.expires_at_ms.map_or(delay_ms, |at_ms| delay_ms.min(at_ms.saturating_sub(self.now_ms)))
    }

    fn accepted(&self) -> Decision {
        let mut decision = self.end(State::Submitted, Signal::Clean, "");
        decision.cancelled_target = State::Submitted;
        decision.counters.run = 0;
        decision
    }

    fn throttled(&self, asked_ms: Option<u64>, scope: Scope) -> Decision {
        let signal = match scope {
            Scope::Recipient => Signal::RecipientThrottled,
            Scope::Credential => Signal::Throttled,
            Scope::Account => Signal::AccountThrottled,
        };
        let mut decision = self.end(State::Pending, signal, "");
        decision.counters.throttles = decision.counters.throttles.saturating_add(1);
        decision.starts_throttle = true;
        decision.hold =
            asked_ms.filter(|&asked| asked > 0).map(|asked_ms| self.retry_after_hold(asked_ms, scope));
        let since_ms = self.job.throttled_since_ms.unwrap_or(self.now_ms);
        if self.now_ms.saturating_sub(since_ms) >= self.policy.throttle_horizon_ms {
            return Decision {
                target: State::Deferred,
                reason: "throttled beyond its horizon".into(),
                ..decision
            };
        }
        self.again(decision, asked_ms)
    }

    fn retry_after_hold(&self, asked_ms: u64, scope: Scope) -> HoldOrder {
        let cap_ms = self.policy.trips.retry_after_cap_ms;
        let on = match scope {
            Scope::Recipient | Scope::Credential => HoldOn::Credential,
            Scope::Account => HoldOn::Account,
        };
        let probe_ms = if asked_ms > cap_ms { cap_ms } else { 0 };
        HoldOrder { on, cause: HoldCause::RetryAfter, delay_ms: asked_ms.min(cap_ms), probe_ms }
    }

    fn quota_spent(&self, until_ms: Option<u64>) -> Decision {
        let mut decision = self.end(State::Pending, Signal::Answered, "quota spent");
        let probe_ms = self.policy.trips.quota_probe_ms;
        let delay_ms = until_ms.unwrap_or(probe_ms).min(MAX_DELAY_MS);
        decision.hold =
            Some(HoldOrder { on: HoldOn::Credential, cause: HoldCause::Quota, delay_ms, probe_ms });
        self.again(decision, until_ms)
    }

    fn transient(&self, reason: Cow<'static, str>, asked_ms: Option<u64>) -> Decision {
        let mut decision = self.end(State::Pending, Signal::Failing, reason);
        // Not accepted for certain, so this attempt alone does not start the idempotency window.
        decision.starts_window = false;
        if self.failed_probe() {
            decision.hold = self.wider_outage();
            return self.again(decision, asked_ms);
        }
        decision.counters.spent = decision.counters.spent.saturating_add(1);
        self.again_or_deferred(decision, asked_ms, self.policy.max_spent)
    }

    fn again_or_deferred(&self, decision: Decision, asked_ms: Option<u64>, cap: u8) -> Decision {
        if decision.counters.spent >= cap {
            let reason = format!("{} attempts spent: {}", decision.counters.spent, decision.reason);
            let target = if decision.flags.ambiguous && !self.deduplicates_still(0) && self.asks() {
                State::Unconfirmed
            } else {
                State::Deferred
            };
            return Decision { target, reason: reason.into(), ..decision };
        }
        self.again(decision, asked_ms)
    }

    fn ambiguous(&self, reason: Cow<'static, str>, asked_ms: Option<u64>) -> Decision {
        let mut decision = self.end(State::Pending, Signal::Failing, reason);
        decision.flags.ambiguous = true;
        decision.cancelled_target = State::Unconfirmed;
        if self.failed_probe() {
            decision.hold = self.wider_outage();
        } else {
            decision.counters.spent = decision.counters.spent.saturating_add(1);
        }
        let again = self.again_or_deferred(decision.clone(), asked_ms, self.policy.max_spent);
        if self.deduplicates_still(again.delay_ms) || !self.asks() {
            return again;
        }
        Decision { target: State::Unconfirmed, delay_ms: 0, ..decision }
    }

    fn asks(&self) -> bool {
        self.policy.on_ambiguous == OnAmbiguous::Ask || self.policy.dedup_window_ms.is_some()
    }

    /// The provider would still recognise the send id `delay_ms` from now.
    fn deduplicates_still(&self, delay_ms: u64) -> bool {
        let since_ms = self.job.sent_since_ms.unwrap_or(self.now_ms);
        let then_ms = self.now_ms.saturating_add(delay_ms);
        self.policy.dedup_window_ms.is_some_and(|window_ms| then_ms.saturating_sub(since_ms) < window_ms)
    }

    /// A lease lost with its worker raises `lapses` only; the attempt it may have made is ambiguous.
    fn lapsed(&self) -> Decision {
        let mut decision = self.given_up(crate::outcome::WORKER_LOST);
        decision.counters.lapses = decision.counters.lapses.saturating_add(1);
        if decision.counters.lapses >= self.policy.max_lapses {
            let target = if self.is_doubtful() { State::Unconfirmed } else { State::Deferred };
            return Decision { target, delay_ms: 0, reason: self.lost_too_often(), ..decision };
        }
        decision
    }

    /// A deploy cut the attempt short: ambiguous, but it counts against nobody (failures 50).
    fn cut_short(&self) -> Decision {
        self.given_up(crate::outcome::SHUTDOWN)
    }

    /// Our side gave up on an attempt that may have been accepted: the next worker has it at once, or a person.
    fn given_up(&self, reason: &'static str) -> Decision {
        let mut decision = self.end(State::Pending, Signal::None, reason);
        decision.flags.ambiguous = true;
        decision.cancelled_target = State::Unconfirmed;
        if self.is_doubtful() {
            return Decision { target: State::Unconfirmed, ..decision };
        }
        decision.delay_ms = self.until_expiry(0);
        decision
    }

    /// Sent again, it might arrive twice, and the class wants a person to decide.
    fn is_doubtful(&self) -> bool {
        !self.deduplicates_still(0) && self.asks()
    }

    /// A lease lost before its start was marked: nothing was written, so it goes back to where it came from.
    fn lapsed_unsent(&self) -> Decision {
        let mut decision = self.not_sent(Cow::Borrowed(crate::outcome::WORKER_LOST));
        decision.counters.lapses = decision.counters.lapses.saturating_add(1);
        if decision.counters.lapses >= self.policy.max_lapses {
            return Decision { target: State::Deferred, reason: self.lost_too_often(), ..decision };
        }
        decision
    }

    fn lost_too_often(&self) -> Cow<'static, str> {
        format!("worker lost {} times", self.policy.max_lapses).into()
    }

    fn terminal(&self, reason: Cow<'static, str>) -> Decision {
        self.end(State::Failed, Signal::Terminal, reason)
    }

    /// What only Rust sees, found at claim. It says nothing about the sender, and its tokens return.
    fn invalid(&self, reason: Cow<'static, str>) -> Decision {
        let ended = self.end(State::Failed, Signal::None, format!("invalid_document: {reason}"));
        Decision { counters: self.job.counters, starts_window: false, refund: true, ..ended }
    }

    /// The key or destination is wrong for every job. The first few fail (a person replays them in one
    /// step); those that arrive behind the hold, and probes, return unspent.
    fn sender_refused(&self, reason: Cow<'static, str>) -> Decision {
        let decision = self.end(State::Failed, Signal::Refused, reason);
        if self.seen.hold.is_some() || self.seen.probe.is_some() {
            return self.again(decision, None);
        }
        decision
    }

    fn unknown(&self, code: &str, asked_ms: Option<u64>) -> Decision {
        let mut decision = self.end(State::Pending, Signal::Failing, format!("unknown answer {code}"));
        // The remote side is there and said something: no outage.
        decision.signal = Signal::None;
        decision.counters.spent = decision.counters.spent.saturating_add(1);
        self.again_or_deferred(decision, asked_ms, self.policy.max_unknown.min(self.policy.max_spent))
    }

    /// Handed back: no attempt was made, nothing is counted, the tokens return.
    fn not_sent(&self, reason: Cow<'static, str>) -> Decision {
        let came_from = if self.job.counters.attempts == 0 { State::Queued } else { State::Pending };
        let ended = self.end(came_from, Signal::None, reason);
        Decision { counters: self.job.counters, starts_window: false, refund: true, ..ended }
    }

    fn failed_probe(&self) -> bool {
        self.seen.probe.is_some_and(|probe| probe.cause == HoldCause::Outage)
    }

    fn wider_outage(&self) -> Option<HoldOrder> {
        let probe = self.seen.probe?;
        let wider_ms = probe.interval_ms.saturating_mul(2).min(self.policy.trips.outage_probe_cap_ms);
        Some(HoldOrder {
            on: HoldOn::Credential,
            cause: HoldCause::Outage,
            delay_ms: wider_ms,
            probe_ms: wider_ms,
        })
    }
}

/// No job sleeps longer than this without being looked at: 30 days.
const MAX_DELAY_MS: u64 = 30 * 86_400_000;

#[cfg(test)]
mod tests;
