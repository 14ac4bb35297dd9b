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
//! It is for rehearsals: its control paths under `/_sandbox` ask nobody who they are, so give it rehearsal
//! credentials and an address that only you reach.

mod bucket;
mod control;
mod front;
pub mod ledger;
mod provider;
mod reply;
mod sandbox;
pub mod scenario;

pub use ledger::{Ledger, LedgerEntry, LedgerSummary};
pub use sandbox::{Sandbox, SandboxError};
pub use scenario::Scenario;
