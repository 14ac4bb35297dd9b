//! The harness: real servers, started and stopped by the tests themselves, each on ports of its own.

pub mod binary;
pub mod conformance;
pub mod limiter;
pub mod peer;
pub mod ports;
pub mod proxy;
pub mod redis_server;
pub mod sentinel;
pub mod stage;
pub mod store;
