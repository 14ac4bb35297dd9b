//! What can go wrong at the store, named by what the caller can do next.

use thiserror::Error;

/// A call that did not do its work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Redis is away, loading, read-only or refuses writes: back off and repeat the same call.
    #[error("Redis is not available: {0}")]
    Unavailable(String),
    /// Redis is at `maxmemory`: what adds is refused, what frees still runs. Repeat later.
    #[error("Redis is out of memory; what frees memory still runs")]
    OutOfMemory,
    /// The class is not declared: no worker or API server with this class has ever started here.
    #[error("unknown class")]
    UnknownClass,
    /// The class is being moved to another group: repeat shortly.
    #[error("the class is being moved; try again shortly")]
    Moving,
    /// The class has `max_waiting` jobs waiting: repeat later.
    #[error("the class is full: {waiting} jobs are waiting")]
    Full {
        /// How many are waiting.
        waiting: u64,
    },
    /// The class's limits are not in Redis (its data was lost): declare them and repeat.
    #[error("the limits of the class are not declared")]
    Undeclared,
    /// Another deployment's jobs live under this namespace: nothing was touched; a person must choose.
    #[error("namespace belongs to deployment {theirs}, the configuration says {ours}")]
    ForeignDeployment {
        /// The id in Redis.
        theirs: String,
        /// The id in the configuration.
        ours: String,
    },
    /// The address or the credentials of Redis are wrong: a person must mend the configuration.
    #[error("Redis cannot be used: {0}")]
    Misconfigured(String),
    /// A script failed or answered what it should not: a bug, with the file and line where it broke.
    #[error("bug in {place}: {problem}")]
    Bug {
        /// `settle.lua:12`
        place: String,
        /// What Redis said.
        problem: String,
    },
}

impl StoreError {
    /// Repeating the call later may help, without anyone doing anything here.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::OutOfMemory | Self::Moving | Self::Full { .. })
    }
}
