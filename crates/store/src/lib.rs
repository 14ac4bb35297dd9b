//! The one place that knows Paceline's keys and Lua.
//!
//! A *movement* is one Lua file in `lua/` and one method of [`Store`] with the same name. Scripts carry
//! decisions out and know no policy; every number they use is passed in. Every call is safe to repeat: claim
//! carries a nonce, settle its lease's deadline, push its key.

pub mod error;
pub mod keys;
pub mod memory;
pub mod movement;
pub mod order;
pub mod reconcile;
pub mod record;
mod redis_store;
pub mod scripts;

pub use error::StoreError;
pub use keys::{BudgetRef, ClassRef, Spender};
pub use memory::MemoryStore;
pub use movement::*;
pub use reconcile::{Reconcile, Reconciled, Step, Walk};
pub use record::Record;
pub use redis_store::wake::Waker;
pub use redis_store::{RedisStore, ServerFacts, Stranded};
