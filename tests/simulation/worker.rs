//! A worker, taken apart into steps so that anything may happen between two of them.

use paceline_core::history::Attempt;
use paceline_core::vocabulary::Verdict;
use paceline_core::{Decision, Job, Outcome, Seen, State};
use paceline_store::Settlement;

/// The lease, the deadline of a request, and how late a request may still be written.
pub(crate) const LEASE_MS: u64 = 20_000;
pub(crate) const LATE_MS: u64 = 2_500;

/// Where one claimed job is in its worker.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    Claimed,
    /// Redis has the mark of its start.
    Started,
    /// It passed the check of lateness: the next step writes, whenever that comes.
    Writing,
    Ended(Box<Verdict>),
}

/// One claimed job.
#[derive(Debug, Clone)]
pub(crate) struct InHand {
    pub(crate) key: String,
    pub(crate) job: Job,
    pub(crate) deadline_ms: u64,
    pub(crate) claimed_ms: u64,
    /// Lateness counts from the first sending of the claim.
    pub(crate) first_sent_ms: u64,
    pub(crate) seen: Seen,
    pub(crate) stage: Stage,
}

/// A claim whose answer has not come.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) nonce: String,
    pub(crate) first_sent_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) claims: u64,
    pub(crate) asking: Option<Asking>,
    pub(crate) in_hand: Vec<InHand>,
}

/// An end without an answer.
pub(crate) fn verdict(outcome: Outcome) -> Box<Verdict> {
    let word = || "simulated".to_owned();
    Box::new(Verdict {
        outcome,
        code: word(),
        rule: word(),
        reason: word(),
        scope: None,
        max_spent: None,
        snippet: String::new(),
    })
}

/// As the worker writes an end.
pub(crate) fn settlement(of: &InHand, verdict: &Verdict, decision: Decision, now_ms: u64) -> Settlement {
    let mut history = of.job.history.clone();
    let made_none = matches!(verdict.outcome, Outcome::NotSent { .. }) && !verdict.outcome.is_lapse();
    if !made_none {
        let outcome = verdict.outcome.as_str().to_owned();
        history.push(Attempt { at_ms: now_ms, outcome, code: verdict.code.clone(), ..Attempt::default() });
    }
    Settlement {
        key: of.key.clone(),
        birth: of.job.birth,
        deadline_ms: of.deadline_ms,
        claimed_ms: of.claimed_ms,
        probed: of.seen.probe.is_some(),
        decided_again: of.seen.hold.is_some(),
        count: format!("{}|{}", verdict.code, verdict.outcome.as_str()),
        history: if decision.target == State::Submitted { history.to_receipt() } else { history.to_lines() },
        decision,
    }
}
