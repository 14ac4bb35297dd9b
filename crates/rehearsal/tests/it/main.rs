//! The sandbox over real connections: what a client of it sees, and what its ledger says of it.
#![allow(clippy::unwrap_used)] // helpers outside of `#[test]` functions count as tests here

mod answers;
mod control;
mod lifetime;
mod scenario;
mod silences;
mod support;
