//! The API against a real Redis, one binary.
#![allow(clippy::unwrap_used)] // helpers outside of `#[test]` functions count as tests here

mod access;
mod budgets;
mod dead_letters;
mod door;
mod edge;
mod jobs;
mod metrics;
mod outage;
mod pages;
mod push;
mod queues;
mod replays;
mod support;
