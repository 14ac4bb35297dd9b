//! What the remote side says, end to end: a real provider, a real Redis, and the ledger for the truth.

mod ambiguous;
mod documents;
mod endings;
mod holds;
mod idle;
mod keys;
mod launch;
mod limiters;
mod pace;
mod peers;
mod retry_after;
mod sharing;
mod spending;
mod support;
mod timing;
mod zones;
