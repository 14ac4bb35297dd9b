//! What an answer means. Three kinds of no: *not ever*, *not right now*, *not known yet*.

use std::borrow::Cow;
use std::fmt;

/// The reason of a lapsed lease: the worker that held it is gone.
pub const WORKER_LOST: &str = "worker_lost";
/// The phase of an attempt that its worker cut short because it was told to end.
pub const SHUTDOWN: &str = "shutdown";

/// Who a throttle is about, and so who slows down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One address; only this job waits.
    Recipient,
    /// The key or bind; also endpoint and sender, unless the class names a budget for them.
    Credential,
    /// What several credentials share.
    Account,
}

/// The meaning of one attempt's end. A refusal by the provider is a value, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The remote side has it.
    Accepted {
        /// The provider's own id of the message, where it gave one.
        message_id: Option<String>,
    },
    /// Not right now: the sender is too fast.
    Throttled {
        /// The wait it named, in ms.
        retry_after_ms: Option<u64>,
        /// Who slows down.
        scope: Scope,
    },
    /// An allowance is used up until a turnover.
    QuotaSpent {
        /// The wait until the turnover, in ms, where it is known.
        retry_after_ms: Option<u64>,
    },
    /// Not right now, and certainly not accepted.
    Transient {
        /// What happened, in a few words.
        reason: Cow<'static, str>,
        /// The wait it named, in ms.
        retry_after_ms: Option<u64>,
    },
    /// Nobody can tell whether it was accepted.
    Ambiguous {
        /// What happened, in a few words.
        reason: Cow<'static, str>,
        /// The wait it named, in ms.
        retry_after_ms: Option<u64>,
    },
    /// Not ever.
    Terminal {
        /// What happened, in a few words.
        reason: Cow<'static, str>,
    },
    /// Not this sender: the key or the destination is wrong for every job.
    SenderRefused {
        /// What happened, in a few words.
        reason: Cow<'static, str>,
    },
    /// A word that is not in the vocabulary.
    Unknown {
        /// The provider's code.
        code: String,
        /// The wait it named, in ms.
        retry_after_ms: Option<u64>,
    },
    /// The document cannot become a request: nothing was sent, and nothing ever will be.
    Invalid {
        /// The field at fault, and what is wrong with it.
        reason: Cow<'static, str>,
    },
    /// No attempt was made: too late to write, shutting down, or lost before its start was marked.
    NotSent {
        /// Why it was handed back.
        reason: Cow<'static, str>,
    },
}

impl Outcome {
    /// An ambiguous end without a named wait.
    pub fn ambiguous(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Ambiguous { reason: reason.into(), retry_after_ms: None }
    }

    /// The word for its kind in counters, attempts and pages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Throttled { .. } => "throttled",
            Self::QuotaSpent { .. } => "quota_spent",
            Self::Transient { .. } => "transient",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Terminal { .. } => "terminal",
            Self::SenderRefused { .. } => "sender_refused",
            Self::Unknown { .. } => "unknown",
            Self::Invalid { .. } => "invalid_document",
            Self::NotSent { .. } => "not_sent",
        }
    }

    /// Why, for the attempt record; empty where the kind says it all.
    pub fn reason(&self) -> &str {
        match self {
            Self::Transient { reason, .. }
            | Self::Ambiguous { reason, .. }
            | Self::Terminal { reason }
            | Self::SenderRefused { reason }
            | Self::Invalid { reason }
            | Self::NotSent { reason } => reason,
            Self::Unknown { code, .. } => code,
            Self::Accepted { .. } | Self::Throttled { .. } | Self::QuotaSpent { .. } => "",
        }
    }

    /// The worker cut it short to end: neither the job nor the remote side had a part in it.
    pub fn is_cut_short(&self) -> bool {
        matches!(self, Self::Ambiguous { reason, .. } if reason == SHUTDOWN)
    }

    /// The lease lapsed with its worker.
    pub fn is_lapse(&self) -> bool {
        matches!(self, Self::Ambiguous { reason, .. } | Self::NotSent { reason } if reason == WORKER_LOST)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            "" => f.write_str(self.as_str()),
            reason => write!(f, "{}: {reason}", self.as_str()),
        }
    }
}
