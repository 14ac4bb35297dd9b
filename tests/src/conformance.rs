//! One conformance suite for every store: everything the movements promise, walked through [`Store`].
//!
//! A scenario is a generic function over a [`Bench`]; `tests/it/store.rs` runs each against Redis, a Redis Cluster
//! and the memory store. It acts through a [`Scene`], which compares everything that is stored with what the
//! answers promised, after every act.
//!
//! [`Store`]: paceline_store::Store

#![expect(missing_docs, reason = "the name of a scenario is its sentence")]
#![expect(clippy::unwrap_used, reason = "a scenario is a test")]

mod acts;
mod bench;
pub mod ends;
mod picture;
mod promises;
pub mod scene;

pub mod budgets;
pub mod claims;
pub mod contract;
pub mod holds;
pub mod late;
pub mod leases;
pub mod looks;
pub mod paces;
pub mod pushes;
pub mod replays;
pub mod senders;
pub mod settles;
pub mod unreadable;
pub mod walk;
pub mod withdrawals;

pub use bench::{Bench, MemoryBench, RedisBench};
