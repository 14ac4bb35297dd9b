//! What breaks, end to end: workers killed, Redis gone, replies lost; the ledger is checked after each.

mod doctor;
mod failover;
mod journal;
mod killed;
mod lost_replies;
mod panics;
mod poison;
mod readiness;
mod reconcile;
mod records;
mod redis_away;
mod redis_refuses;
mod reload;
mod scripts_lost;
mod shutdown;
mod soak;
mod steps;
mod support;
mod suspended;
