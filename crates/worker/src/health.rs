//! Whether this worker can do its work: tied to the last good claim of each class, not to a PING.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How the claiming of a class goes.
#[derive(Debug, Clone, Copy)]
enum Claiming {
    /// No claim was answered yet.
    NotYet,
    /// The last answered one.
    Good(Instant),
    /// Every slot is taken: the remote side is slow, and nothing is wrong here.
    Full,
}

/// Shared by the loops and whoever answers readiness.
#[derive(Debug)]
pub struct Health {
    stale_after: Duration,
    claiming: Mutex<BTreeMap<String, Claiming>>,
    last_trouble: Mutex<Option<Instant>>,
    unwritten: Mutex<BTreeMap<String, Instant>>,
}

impl Health {
    pub(crate) fn new(classes: impl IntoIterator<Item = String>, stale_after: Duration) -> Self {
        Self {
            stale_after,
            claiming: Mutex::new(classes.into_iter().map(|class| (class, Claiming::NotYet)).collect()),
            last_trouble: Mutex::new(None),
            unwritten: Mutex::new(BTreeMap::new()),
        }
    }

    /// `None` when every class was claimed from lately and no outcome waits to be written; else why not.
    pub fn problem(&self) -> Option<String> {
        let claiming = self.claiming.lock().expect("no holder panics");
        for (class, claiming) in claiming.iter() {
            match claiming {
                Claiming::NotYet => return Some(format!("class {class} was not claimed from yet")),
                Claiming::Good(at) if at.elapsed() > self.stale_after => {
                    return Some(format!(
                        "class {class} was last claimed from {} s ago",
                        at.elapsed().as_secs()
                    ));
                }
                Claiming::Good(_) | Claiming::Full => {}
            }
        }
        self.oldest_unwritten()
            .filter(|age| *age > self.stale_after)
            .map(|age| format!("outcomes wait to be written for {} s", age.as_secs()))
    }

    /// The age of the oldest outcome that could not be written yet.
    pub fn oldest_unwritten(&self) -> Option<Duration> {
        self.unwritten.lock().expect("no holder panics").values().map(Instant::elapsed).max()
    }

    pub(crate) fn claimed(&self, class: &str) {
        self.set(class, Claiming::Good(Instant::now()));
    }

    /// Nothing can be claimed until a slot is free, as [`Self::claimed`] will tell.
    pub(crate) fn full(&self, class: &str) {
        self.set(class, Claiming::Full);
    }

    fn set(&self, class: &str, now: Claiming) {
        if let Some(claiming) = self.claiming.lock().expect("no holder panics").get_mut(class) {
            *claiming = now;
        }
    }

    pub(crate) fn trouble(&self) {
        *self.last_trouble.lock().expect("no holder panics") = Some(Instant::now());
    }

    /// Redis was away a moment ago: leases that look lapsed may belong to workers that could not settle.
    pub(crate) fn troubled_within(&self, span: Duration) -> bool {
        self.last_trouble.lock().expect("no holder panics").is_some_and(|at| at.elapsed() < span)
    }

    pub(crate) fn unwritten_since(&self, class: &str, since: Option<Instant>) {
        let mut unwritten = self.unwritten.lock().expect("no holder panics");
        match since {
            Some(since) => unwritten.insert(class.to_owned(), since),
            None => unwritten.remove(class),
        };
    }
}
