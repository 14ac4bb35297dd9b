//! The repository tests itself: it reads its own tree and compares it with what DESIGN and STYLE ask for.
//!
//! Every test gathers all it finds before it fails, each as `file:line`. That every setting of `paceline.toml`
//! exists and the reverse is a test of core (`crates/core/src/config/tests.rs`).

mod docs;
mod movements;
mod rust;
mod sizes;
mod tree;
mod walls;
mod words;
