//! The HTTP transport against real sockets: what leaves, what comes back, and what is said when it breaks.
// Clippy's own exception for tests does not reach the functions that tests share.
#![allow(clippy::unwrap_used)]

mod answers;
mod connections;
mod deadlines;
mod peer;
mod requests;
mod secrets;
mod single;
