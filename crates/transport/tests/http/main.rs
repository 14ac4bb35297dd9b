//! The HTTP transport against real sockets: what leaves, what comes back, and what is said when it breaks.

mod answers;
mod connections;
mod deadlines;
mod peer;
mod requests;
mod secrets;
mod single;
