//! Ends of attempts, already decided: how Rust would settle them is `paceline_core`'s matter and tested there.

use paceline_core::decide::{Decision, HoldCause, HoldOn, HoldOrder, Signal};
use paceline_core::history::{Attempt, History};
use paceline_core::job::Counters;
use paceline_core::{Job, State};
use paceline_store::{Batch, Claimed, Record, Settlement};

/// The claimed job of that key.
pub fn claimed<'a>(batch: &'a Batch, key: &str) -> &'a Claimed {
    batch.jobs.iter().find(|claimed| claimed.key == key).expect("it is in the batch")
}

/// The keys of a batch, in the order they are to be sent.
pub fn keys(batch: &Batch) -> Vec<&str> {
    batch.jobs.iter().map(|claimed| claimed.key.as_str()).collect()
}

/// The marks of a batch, as `start` takes them.
pub fn marks(batch: &Batch) -> Vec<(String, [u8; 8])> {
    let birth = |claimed: &Claimed| job_of(&claimed.record).map_or([0; 8], |job| job.birth);
    batch.jobs.iter().map(|claimed| (claimed.key.clone(), birth(claimed))).collect()
}

fn job_of(record: &Record) -> Option<&Job> {
    match record {
        Record::Job(job) => Some(job),
        _ => None,
    }
}

/// The end of an attempt that was on the wire, going to a state at once and saying nothing about the sender; an
/// acceptance says that it is well. Of a record that cannot be read it is the formality that parks it.
pub fn end(batch: &Batch, key: &str, target: State) -> Settlement {
    let claimed = claimed(batch, key);
    let stand_in = Job::new(paceline_core::JobKey::new("unreadable").expect("a valid key"), Vec::new(), 0);
    let job = job_of(&claimed.record).unwrap_or(&stand_in);
    let mut history = job.history.clone();
    let code = format!("to_{target}");
    history.push(Attempt {
        at_ms: batch.now_ms,
        code: code.clone(),
        outcome: "test".into(),
        ..Attempt::default()
    });
    let accepted = target == State::Submitted;
    let cancelled = if job.flags.ambiguous { State::Unconfirmed } else { State::Cancelled };
    Settlement {
        key: key.to_owned(),
        birth: job.birth,
        deadline_ms: batch.deadline_ms,
        claimed_ms: batch.now_ms,
        probed: batch.probe.is_some(),
        decision: Decision {
            target,
            cancelled_target: if accepted { State::Submitted } else { cancelled },
            delay_ms: 0,
            counters: Counters { attempts: job.counters.attempts + 1, ..job.counters },
            flags: paceline_core::job::Flags { started: false, ..job.flags },
            starts_throttle: false,
            starts_window: true,
            signal: if accepted { Signal::Clean } else { Signal::None },
            hold: None,
            refund: false,
            reason: "".into(),
        },
        decided_again: false,
        count: format!("{code}|test"),
        history: history.to_lines(),
    }
}

/// An acceptance under this id of the provider.
pub fn accepted(batch: &Batch, key: &str, message_id: &str) -> Settlement {
    end(batch, key, State::Submitted).with_message_id(message_id)
}

/// Changes to an end, in the order a test names them.
pub trait Ending: Sized {
    /// With the provider's id of the message in its last attempt.
    fn with_message_id(self, id: &str) -> Self;
    /// Saying this about the sender.
    fn saying(self, signal: Signal) -> Self;
    /// The next attempt is not before this time has passed.
    fn after(self, delay_ms: u64) -> Self;
    /// Some attempt may have been accepted.
    fn ambiguous(self) -> Self;
    /// Nothing was sent: no attempt, no window, the tokens go back.
    fn unsent(self) -> Self;
    /// Of something that was claimed at this moment.
    fn claimed_at(self, ms: u64) -> Self;
    /// Ordering a hold.
    fn holding(self, on: HoldOn, cause: HoldCause, delay_ms: u64, probe_ms: u64) -> Self;
}

impl Ending for Settlement {
    fn with_message_id(mut self, id: &str) -> Self {
        let mut attempts = History::parse(&self.history).attempts().to_vec();
        attempts.last_mut().expect("an end has an attempt").message_id = Some(id.to_owned());
        let mut history = History::default();
        attempts.into_iter().for_each(|attempt| history.push(attempt));
        self.history = history.to_lines();
        self
    }

    fn saying(mut self, signal: Signal) -> Self {
        self.decision.signal = signal;
        self
    }

    fn after(mut self, delay_ms: u64) -> Self {
        self.decision.delay_ms = delay_ms;
        self
    }

    fn ambiguous(mut self) -> Self {
        self.decision.flags.ambiguous = true;
        self.decision.cancelled_target = State::Unconfirmed;
        self
    }

    fn unsent(mut self) -> Self {
        self.decision.counters.attempts -= 1;
        self.decision.starts_window = false;
        self.decision.refund = true;
        self
    }

    fn claimed_at(mut self, ms: u64) -> Self {
        self.claimed_ms = ms;
        self
    }

    fn holding(mut self, on: HoldOn, cause: HoldCause, delay_ms: u64, probe_ms: u64) -> Self {
        self.decision.hold = Some(HoldOrder { on, cause, delay_ms, probe_ms });
        self
    }
}
