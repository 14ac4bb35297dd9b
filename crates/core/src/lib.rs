//! The pure heart of Paceline: what a job is, what an answer means, what to do about it.
//!
//! Nothing here reads a clock, draws a random number or does I/O: time and chance are arguments
//! (the crate's `clippy.toml` bans the ways to fetch them). The one idea of the product lives here:
//! [`vocabulary::classify`] turns raw facts into an [`Outcome`], and [`decide`] turns an outcome into
//! a [`Decision`] that a Lua script carries out without knowing why.

pub mod answer;
pub mod backoff;
pub mod budget;
pub mod config;
pub mod decide;
pub mod document;
pub mod history;
pub mod job;
pub mod name;
pub mod outcome;
pub mod pace;
pub mod policy;
pub mod preset;
pub mod quota;
pub mod rate_limit_reset;
pub mod reconcile;
pub mod request;
pub mod retry_after;
pub mod send_id;
pub mod state;
pub mod text;
pub mod transport;
pub mod vocabulary;
pub mod window;

pub use answer::Answer;
pub use decide::{Decision, Draws, Seen, decide};
pub use document::Document;
pub use job::Job;
pub use name::{JobKey, Name};
pub use outcome::Outcome;
pub use policy::Policy;
pub use state::State;
pub use transport::{Outgoing, Transport};

/// What is wrong with an input, and where: every refusal names its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Fault {
    /// The field at fault, as the producer wrote it (`payload/text`, `request.path`).
    pub field: String,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

impl Fault {
    /// A fault in `field`.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}
