//! Whether this worker can do its work: tied to the last good claim of each class, not to a PING.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shared by the loops and whoever answers readiness.
#[derive(Debug)]
pub struct Health {
    stale_after: Duration,
    last_good_claim: Mutex<BTreeMap<String, Option<Instant>>>,
    last_trouble: Mutex<Option<Instant>>,
    unwritten: Mutex<BTreeMap<String, Instant>>,
}

impl Health {
    pub(crate) fn new(classes: impl IntoIterator<Item = String>, stale_after: Duration) -> Self {
        Self {
            stale_after,
            last_good_claim: Mutex::new(classes.into_iter().map(|class| (class, None)).collect()),
            last_trouble: Mutex::new(None),
            unwritten: Mutex::new(BTreeMap::new()),
        }
    }

    /// `None` when every class was claimed from lately and no outcome waits to be written; else why not.
    pub fn problem(&self) -> Option<String> {
        let claims = self.last_good_claim.lock().expect("no holder panics");
        for (class, last) in claims.iter() {
            match last {
                None => return Some(format!("class {class} was not claimed from yet")),
                Some(at) if at.elapsed() > self.stale_after => {
                    return Some(format!(
                        "class {class} was last claimed from {} s ago",
                        at.elapsed().as_secs()
                    ));
                }
                Some(_) => {}
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
        if let Some(last) = self.last_good_claim.lock().expect("no holder panics").get_mut(class) {
            *last = Some(Instant::now());
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
