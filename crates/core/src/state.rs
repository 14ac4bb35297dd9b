//! The states of a job. A job is in exactly one index, and the index *is* the state.
//!
//! ```text
//!  push ─► queued ──claim──► in_flight ──settle──► submitted     accepted by the remote side
//!            ▲                 ▲  │ │            ├─► failed        not ever: terminal, reason stored
//!            │                 │  │ └────────────┼─► deferred      waits for a person
//!            │     claim       │  │              └─► unconfirmed   nobody can tell, and the class says "ask"
//!            │   ┌─────────────┘  ▼
//!            │ pending ◄── not right now / try again          reap: a lapsed lease is an ambiguous end
//!            │   ▲
//!            └───┴── replay ◄── dead letters        queued | pending ─► expired · cancelled
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a job is. The numbers are the contract with the scripts (`lua/prelude.lua`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum State {
    /// Never tried; claim moves it out once it is due.
    Queued = 1,
    /// Tried, and will be tried again at its next attempt time; claim moves it out.
    Pending = 2,
    /// A worker holds its lease; settle or reap moves it out within the lease.
    InFlight = 3,
    /// Accepted by the remote side ("submitted", not "delivered"); sweep forgets it after retention.
    Submitted = 4,
    /// Not ever: terminal. Sweep forgets it after retention; a person may replay it.
    Failed = 5,
    /// Spent above its cap or throttled beyond its horizon; only a person moves it out.
    Deferred = 6,
    /// Nobody can tell whether it went out; only a person, or a late acceptance, moves it out.
    Unconfirmed = 7,
    /// Its `expires_at` passed before an acceptance; sweep forgets it after retention.
    Expired = 8,
    /// A producer or operator withdrew it; sweep forgets it after retention.
    Cancelled = 9,
}

impl State {
    /// Every state, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Pending,
        Self::InFlight,
        Self::Submitted,
        Self::Failed,
        Self::Deferred,
        Self::Unconfirmed,
        Self::Expired,
        Self::Cancelled,
    ];

    /// The word for it in Redis, JSON, metrics and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Pending => "pending",
            Self::InFlight => "in_flight",
            Self::Submitted => "submitted",
            Self::Failed => "failed",
            Self::Deferred => "deferred",
            Self::Unconfirmed => "unconfirmed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Its number in the scripts.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// A dead letter waits for a person; `failed` counts as one on request.
    pub const fn is_dead_letter(self) -> bool {
        matches!(self, Self::Deferred | Self::Unconfirmed)
    }

    /// Nothing more happens to it by itself.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Submitted | Self::Failed | Self::Expired | Self::Cancelled)
    }

    /// Queued or pending: it will be claimed when due.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Queued | Self::Pending)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_reads_back_from_its_word_and_counts_up() {
        for (index, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(State::parse(state.as_str()), Some(state));
            assert_eq!(usize::from(state.number()), index + 1);
        }
        assert_eq!(State::parse("rejected"), None);
    }
}
