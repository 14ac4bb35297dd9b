//! What is kept of one job: in Redis its record and body.

use crate::movement::Settlement;
use crate::record::Record;
use paceline_core::history::{Attempt, History};
use paceline_core::job::Flags;
use paceline_core::{Job, State};

/// A document above this lives apart from its record.
const PACKED_BYTES: usize = 4_096;

/// A job and what only the store knows of it.
#[derive(Debug, Clone)]
pub(super) struct Card {
    pub(super) job: Job,
    pub(super) fingerprint: [u8; 16],
    /// The lease whose end was written last; 0: none.
    pub(super) last_settled_ms: u64,
    /// Its document is gone for good.
    pub(super) is_receipt: bool,
}

impl Card {
    pub(super) fn new(job: Job, fingerprint: [u8; 16]) -> Self {
        Self { job, fingerprint, last_settled_ms: 0, is_receipt: false }
    }

    pub(super) fn has_expired(&self, now_ms: u64) -> bool {
        self.job.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// As a list shows it: a document that lives apart is not loaded.
    pub(super) fn packed(&self) -> Record {
        let mut job = self.job.clone();
        if job.document.len() > PACKED_BYTES {
            job.document.clear();
        }
        Record::Job(Box::new(job))
    }

    /// Shrinks to what is kept of a job that is over.
    pub(super) fn shrink(&mut self, last: Option<Attempt>) {
        self.job.document.clear();
        self.job.history = History::default();
        last.into_iter().for_each(|attempt| self.job.history.push(attempt));
        self.is_receipt = true;
    }

    /// Shrinks and keeps its last attempt.
    pub(super) fn shrink_to_last(&mut self) {
        self.shrink(self.job.history.last().cloned());
    }

    /// Takes over what a settlement says; where the job goes.
    pub(super) fn apply(&mut self, settlement: &Settlement, now_ms: u64) -> State {
        let decision = &settlement.decision;
        let cancelled = self.job.flags.cancel;
        self.job.counters = decision.counters;
        self.job.flags = Flags { cancel: false, ..decision.flags };
        if decision.starts_throttle {
            self.job.throttled_since_ms.get_or_insert(now_ms);
        }
        if decision.starts_window {
            self.job.sent_since_ms.get_or_insert(now_ms);
        }
        self.last_settled_ms = settlement.deadline_ms;
        if cancelled { decision.cancelled_target } else { decision.target }
    }

    /// What a job leaves behind in a state: a receipt where it is over for good, all of it where a person may
    /// want it back.
    pub(super) fn keep_for(&mut self, state: State, history: &[u8]) {
        if matches!(state, State::Submitted | State::Expired | State::Cancelled) {
            self.shrink(last_attempt(history));
        } else {
            self.job.history = History::parse(history);
        }
    }
}

/// The last line of a history, where it is whole.
pub(super) fn last_attempt(history: &[u8]) -> Option<Attempt> {
    let lines = history.strip_suffix(b"\n")?;
    let line = lines.rsplit(|&byte| byte == b'\n').next()?;
    History::parse(line).last().cloned()
}

/// A card, or something that cannot be read.
#[derive(Debug, Clone)]
pub(super) enum Kept {
    Card(Box<Card>),
    Odd(Record),
}

impl Kept {
    pub(super) fn card(&self) -> Option<&Card> {
        match self {
            Self::Card(card) => Some(card),
            Self::Odd(_) => None,
        }
    }

    pub(super) fn card_mut(&mut self) -> Option<&mut Card> {
        match self {
            Self::Card(card) => Some(card),
            Self::Odd(_) => None,
        }
    }

    pub(super) fn record(&self) -> Record {
        match self {
            Self::Card(card) => Record::Job(Box::new(card.job.clone())),
            Self::Odd(record) => record.clone(),
        }
    }
}
