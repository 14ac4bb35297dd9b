//! Everything that is stored of a class, in one value: what a test compares.

use super::bench::Bench;
use futures_util::future::{join_all, join3};
use paceline_core::State;
use paceline_store::{ClassRef, Cursor, Hold, Listed, Record, Store};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// More than any scenario has in one state.
const WHOLE: usize = 1_000;

/// A class as it is stored. Nothing of it is left out: every count, every index in its order, every record.
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) depths: [u64; 9],
    pub(super) scheduled: u64,
    pub(super) oldest_due_ms: Option<u64>,
    pub(super) holds: Vec<Option<Hold>>,
    pub(super) lists: BTreeMap<State, Vec<Listed>>,
    pub(super) jobs: BTreeMap<String, Option<(State, u64, Record)>>,
    pub(super) counts: BTreeMap<String, u64>,
}

/// What a look sees beside the picture: the clock, and an age that is compared by its bounds.
pub(super) struct Moment {
    pub(super) now_ms: u64,
    pub(super) oldest_pending_ms: Option<u64>,
}

impl Picture {
    pub(super) async fn take<B: Bench>(
        bench: &B,
        class: &ClassRef,
        keys: impl Iterator<Item = &String>,
    ) -> (Self, Moment) {
        let store = bench.store();
        let depths = store.depths(class).await.expect("depths are read");
        let list = async |state: State| match depths.of(state) {
            0 => (state, Vec::new()),
            _ => (state, store.list(class, state, &Cursor::default(), WHOLE).await.expect("a list is read")),
        };
        let get = async |key: &String| {
            let stored = store.get(class, key).await.expect("a job is read");
            (key.clone(), stored.map(|job| (job.state.expect("it is in an index"), job.score_ms, job.record)))
        };
        let (lists, jobs, counts) =
            join3(join_all(State::ALL.map(list)), join_all(keys.map(get)), bench.counts(class)).await;
        let picture = Self {
            depths: depths.counts,
            scheduled: depths.scheduled,
            oldest_due_ms: depths.oldest_due_ms,
            holds: depths.holds,
            lists: lists.into_iter().collect(),
            jobs: jobs.into_iter().collect(),
            counts: one_already(counts),
        };
        (picture, Moment { now_ms: depths.now_ms, oldest_pending_ms: depths.oldest_pending_ms })
    }
}

/// A repeat of a settle and a second report of one acceptance are both `already`; the answer does not tell which.
fn one_already(mut counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    if let Some(n) = counts.remove("|already|submitted") {
        *counts.entry("|already|".into()).or_default() += n;
    }
    counts
}

/// Like `assert_eq!`, showing where the first difference is and not the whole of both.
pub(super) fn assert_same<T: PartialEq + Debug>(one: &T, two: &T, what: impl FnOnce() -> String) {
    if one == two {
        return;
    }
    let (one, two) = (format!("{one:#?}"), format!("{two:#?}"));
    let at = one.lines().zip(two.lines()).take_while(|(one, two)| one == two).count();
    let around =
        |text: &str| text.lines().skip(at.saturating_sub(25)).take(40).collect::<Vec<_>>().join("\n");
    panic!("{}\n--- one\n{}\n--- two\n{}", what(), around(&one), around(&two));
}
