//! Every key of Paceline is spelled here: `<namespace>:{<group>}:…`. One script touches one hash tag only.

use paceline_core::config::{Class, Config};
use paceline_core::{Name, State, budget::Limits, quota::Quota};

/// A class as the store addresses it: its group and what it spends from.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassRef {
    /// The class.
    pub class: Name,
    /// Its hash tag.
    pub group: Name,
    /// The credential's budget first, the account's after it.
    pub budgets: Vec<BudgetRef>,
    /// A push above this many waiting jobs is refused; 0: no limit.
    pub max_waiting: u64,
}

/// A budget and everything that spends from it.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetRef {
    /// Its name.
    pub name: Name,
    /// Its limits, as configured.
    pub limits: Limits,
    /// The classes that share it.
    pub spenders: Vec<Spender>,
}

/// A class among those that share a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Spender {
    /// The class.
    pub class: Name,
    /// Its part of the pace, of all that share it together 1.
    pub share: f64,
    /// Those with higher numbers give way first.
    pub shed_order: u32,
}

impl ClassRef {
    /// The class of a configuration.
    pub fn of(config: &Config, class: &Class) -> Self {
        let budget = |(name, limits): (Name, Limits)| BudgetRef {
            spenders: Spender::all(&config.spenders(&name).collect::<Vec<_>>()),
            name,
            limits,
        };
        Self {
            class: class.name.clone(),
            group: class.group.clone(),
            budgets: config.budgets_of(class).into_iter().map(budget).collect(),
            max_waiting: class.max_waiting,
        }
    }
}

impl Spender {
    fn all(classes: &[&Class]) -> Vec<Self> {
        let total: u32 = classes.iter().map(|class| class.share).sum();
        let of = |class: &&Class| Self {
            class: class.name.clone(),
            share: f64::from(class.share) / f64::from(total),
            shed_order: class.shed_order,
        };
        classes.iter().map(of).collect()
    }
}

/// How many keys of a class every script gets first; `lua/prelude.lua` names them.
pub const CLASS_KEYS: usize = 13;

/// Spells keys under one namespace.
#[derive(Debug, Clone)]
pub struct Keys {
    namespace: Name,
}

impl Keys {
    /// Keys under `namespace`.
    pub fn new(namespace: Name) -> Self {
        Self { namespace }
    }

    fn of_class(&self, class: &ClassRef, what: &str) -> String {
        format!("{}:{{{}}}:{}:{what}", self.namespace, class.group, class.class)
    }

    /// The thirteen that every script of a class gets: the index of each state, then the class's hash, the
    /// first entries into pending, the wake marker, and the counts of this minute.
    pub fn class(&self, class: &ClassRef, minute: u64) -> Vec<String> {
        let mut keys: Vec<String> =
            State::ALL.iter().map(|state| self.of_class(class, state.as_str())).collect();
        keys.extend(["class", "pending_since", "wake"].map(|what| self.of_class(class, what)));
        keys.push(self.minute(class, minute));
        debug_assert_eq!(keys.len(), CLASS_KEYS);
        keys
    }

    /// The index of a state.
    pub fn index(&self, class: &ClassRef, state: State) -> String {
        self.of_class(class, state.as_str())
    }

    /// The counts of a minute since the epoch.
    pub fn minute(&self, class: &ClassRef, minute: u64) -> String {
        self.of_class(class, &format!("minute:{minute}"))
    }

    /// The class's own hash: that it exists, its hold, its limits.
    pub fn class_hash(&self, class: &ClassRef) -> String {
        self.of_class(class, "class")
    }

    /// The marker that wakes one idle worker.
    pub fn wake(&self, class: &ClassRef) -> String {
        self.of_class(class, "wake")
    }

    /// The last claim of a worker.
    pub fn claimed(&self, class: &ClassRef, worker: &str) -> String {
        self.of_class(class, &format!("claimed:{worker}"))
    }

    /// That somebody walks the class's records against its indexes, or did not long ago.
    pub fn reconciled(&self, class: &ClassRef) -> String {
        self.of_class(class, "reconciled")
    }

    /// A job's record.
    pub fn job(&self, class: &ClassRef, key: &str) -> String {
        self.of_class(class, &format!("job:{key}"))
    }

    /// A job's document, where it is too large for the record.
    pub fn body(&self, class: &ClassRef, key: &str) -> String {
        self.of_class(class, &format!("body:{key}"))
    }

    /// A budget's hash; it lives with the group that shares it.
    pub fn budget(&self, class: &ClassRef, budget: &Name) -> String {
        format!("{}:{{{}}}:budget:{budget}", self.namespace, class.group)
    }

    /// What a budget's quota counted, by slots.
    pub fn quota(&self, class: &ClassRef, budget: &Name, quota: &Quota) -> String {
        format!("{}:{{{}}}:quota:{budget}:{}", self.namespace, class.group, quota.label())
    }

    /// The last decisions about a budget's pace.
    pub fn decisions(&self, class: &ClassRef, budget: &Name) -> String {
        format!("{}:{{{}}}:decisions:{budget}", self.namespace, class.group)
    }

    /// The leases of another class of the same group.
    pub fn in_flight_of(&self, class: &ClassRef, spender: &Name) -> String {
        format!("{}:{{{}}}:{spender}:{}", self.namespace, class.group, State::InFlight)
    }

    /// What belongs to no group: the deployment's id.
    pub fn deployment(&self) -> String {
        format!("{}:{{_}}:deployment", self.namespace)
    }

    /// Also: the group of each class, so that nobody moves one with jobs in it.
    pub fn groups(&self) -> String {
        format!("{}:{{_}}:groups", self.namespace)
    }

    /// Everything under the namespace, for `SCAN`.
    pub fn pattern(&self) -> String {
        format!("{}:*", self.namespace)
    }
}
