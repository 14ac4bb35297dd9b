//! The sandbox: a real HTTP server that behaves like a rate-limited remote API, and keeps the truth.
//!
//! A [`Scenario`] says how the other company behaves (its limit, its `Retry-After`, its errors, its silences)
//! and may change while the server runs. The [`ledger`] says what really arrived and what was delivered,
//! whatever the sender believes: a request whose connection was cut without an answer is in it as delivered.
//!
//! ```text
//! front    reads a request, asks the provider, gives or withholds the answer    (async, the only HTTP)
//! provider one verdict per request: time and draws in, verdict out              (plain, under one lock)
//! bucket   the limit · ledger   the record · reply   the words of an answer     (plain)
//! ```
//!
//! A [`Launch`] is a whole rehearsal: arrivals, the real limit and the believed one, what goes wrong. Its [`figures`]
//! come from the ledger, a [`naive`] sender runs the same for comparison, and a [`chart`] shows both.
//!
//! It is for rehearsals: its control paths under `/_sandbox` ask nobody who they are, so give it rehearsal
//! credentials and an address that only you reach.

mod bucket;
pub mod chart;
mod control;
pub mod figures;
mod front;
pub mod launch;
pub mod ledger;
pub mod naive;
mod provider;
mod reply;
mod sandbox;
pub mod scenario;

pub use figures::Figures;
pub use launch::Launch;
pub use ledger::{Ledger, LedgerEntry, LedgerSummary};
pub use sandbox::{Sandbox, SandboxError};
pub use scenario::Scenario;
