//! The loop: claim → send → classify → decide → settle.
//!
//! One [`Worker`] serves any number of classes. Each class has loops of its own (claimer, settler, reaper,
//! sweeper), its own slots and its own transport, so that a stuck class never delays another. It knows the
//! [`Transport`] trait and no transport, so that a program can embed it with its own.

mod attempt;
mod backoff;
mod claimer;
mod health;
mod in_hand;
mod journal;
mod lane;
mod pacer;
mod reaper;
mod reconciler;
mod settler;
mod steps;
mod sweeper;
mod worker;

pub use health::Health;
pub use lane::Lane;
pub use worker::{Worker, WorkerOptions};

#[doc(no_inline)]
pub use paceline_core::{Answer, Outgoing, Transport};
