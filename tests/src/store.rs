//! Building blocks for tests of the store.

use paceline_core::budget::Limits;
use paceline_core::{JobKey, Name};
use paceline_store::{BudgetRef, ClassRef, NewJob, Spender};

/// A name.
pub fn name(text: &str) -> Name {
    Name::new(text).expect("tests use valid names")
}

/// A class of its own group, with a budget so wide that it never binds.
pub fn class(class: &str) -> ClassRef {
    class_with(class, "100000/s", 100_000, 0)
}

/// A class of its own group, with one budget.
pub fn class_with(class: &str, rate: &str, burst: u32, max_in_flight: u32) -> ClassRef {
    let limits = Limits::fixed(rate.parse().expect("tests use valid rates"), burst, max_in_flight);
    ClassRef {
        class: name(class),
        group: name(class),
        budgets: vec![BudgetRef {
            name: name(&format!("{class}-key")),
            limits,
            spenders: vec![spender(class)],
        }],
        max_waiting: 0,
    }
}

/// A class that spends alone.
pub fn spender(class: &str) -> Spender {
    Spender { class: name(class), share: 1.0, shed_order: 20 }
}

/// A job due now.
pub fn job(key: &str) -> NewJob {
    NewJob {
        key: JobKey::new(key).expect("tests use valid keys"),
        at_ms: 0,
        expires_at_ms: 0,
        cost: 1,
        campaign: String::new(),
        fingerprint: String::new(),
        document: format!("{{\"payload\":{{\"key\":\"{key}\"}}}}").into_bytes(),
    }
}
