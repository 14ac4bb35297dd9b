//! Everything there is: the classes, the budgets they spend from, and the clock.

use super::budget::Budget;
use super::hold::Standing;
use super::jobs::Jobs;
use crate::keys::ClassRef;
use crate::record::Record;
use paceline_core::Name;
use paceline_core::decide::Probe;
use std::collections::BTreeMap;

/// A group and a name in it.
type Place = (Name, Name);

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) now_ms: u64,
    pub(super) births: u64,
    lines: BTreeMap<Place, Line>,
    budgets: BTreeMap<Place, Budget>,
}

/// One class: what its hash, its indexes and its records are in Redis.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub(super) declared: bool,
    pub(super) max_waiting: u64,
    pub(super) hold: Option<Standing>,
    pub(super) window_open_until_ms: u64,
    pub(super) terminal_run: u64,
    pub(super) replay_slot_ms: f64,
    pub(super) claims: BTreeMap<String, LastClaim>,
    pub(super) jobs: Jobs,
}

/// The last claim of a worker, for its repeat.
#[derive(Debug, Clone)]
pub(super) struct LastClaim {
    pub(super) nonce: String,
    pub(super) deadline_ms: u64,
    pub(super) kept_until_ms: u64,
    pub(super) probe: Option<Probe>,
    pub(super) keys: Vec<String>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now_ms: super::MemoryStore::EPOCH_MS,
            births: 0,
            lines: BTreeMap::new(),
            budgets: BTreeMap::new(),
        }
    }
}

impl World {
    pub(super) fn line(&mut self, class: &ClassRef) -> &mut Line {
        self.lines.entry((class.group.clone(), class.class.clone())).or_default()
    }

    /// Another class of the same group, if anything was ever written there.
    pub(super) fn neighbour(&self, class: &ClassRef, name: &Name) -> Option<&Line> {
        self.lines.get(&(class.group.clone(), name.clone()))
    }

    pub(super) fn budget(&mut self, class: &ClassRef, name: &Name) -> &mut Budget {
        self.budgets.entry((class.group.clone(), name.clone())).or_default()
    }

    /// A budget, if anything was ever written there.
    pub(super) fn known_budget(&self, class: &ClassRef, name: &Name) -> Option<&Budget> {
        self.budgets.get(&(class.group.clone(), name.clone()))
    }

    /// The class's hold, then each budget's.
    pub(super) fn holds(&self, class: &ClassRef) -> impl Iterator<Item = Option<&Standing>> {
        let own = self.neighbour(class, &class.class).and_then(|line| line.hold.as_ref());
        let of = |name: &Name| self.budgets.get(&(class.group.clone(), name.clone()));
        let budgets = class.budgets.iter().map(move |budget| of(&budget.name)?.hold.as_ref());
        std::iter::once(own).chain(budgets)
    }

    /// The class and its credential's budget, both to be changed.
    pub(super) fn line_and_credential(&mut self, class: &ClassRef) -> (&mut Line, &mut Budget) {
        let credential = (class.group.clone(), class.budgets[0].name.clone());
        let line = self.lines.entry((class.group.clone(), class.class.clone())).or_default();
        (line, self.budgets.entry(credential).or_default())
    }

    /// The clock in µs, as budgets count.
    pub(super) fn now_us(&self) -> f64 {
        self.now_ms as f64 * 1_000.0
    }

    /// `declare.lua`
    pub(super) fn declare(&mut self, class: &ClassRef) {
        let line = self.line(class);
        line.declared = true;
        line.max_waiting = class.max_waiting;
        let now_us = self.now_us();
        for at in &class.budgets {
            let budget = self.budget(class, &at.name);
            if budget.limits_by.is_empty() {
                budget.write_limits(&at.limits, now_us);
            }
        }
    }

    pub(super) fn counts(&mut self, class: &ClassRef, minutes: u64) -> Vec<(u64, Vec<(String, u64)>)> {
        let now = self.now_ms / 60_000;
        let counts = &self.line(class).jobs.counts;
        let of =
            |minute| counts.get(&minute).into_iter().flatten().map(|(code, n)| (code.clone(), *n)).collect();
        (now.saturating_sub(minutes.saturating_sub(1))..=now).map(|minute| (minute, of(minute))).collect()
    }

    pub(super) fn plant(&mut self, class: &ClassRef, key: &str, record: Record) {
        self.line(class).jobs.plant(key, record);
    }
}
