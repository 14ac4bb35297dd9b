//! What the remote side says, end to end: a real provider, a real Redis, and the ledger for the truth.
mod launch;
