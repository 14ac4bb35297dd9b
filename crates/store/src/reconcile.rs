//! Walks the records of a class against its indexes and back, in small chunks, and puts right what stands wrong.

use crate::keys::ClassRef;
use crate::movement::{Cursor, Result, Store};
use crate::record::{RECEIPT, Record};
use crate::redis_store::RedisStore;
use paceline_core::State;
use paceline_core::reconcile::{Kept, Placement, placement};
use std::collections::HashSet;

/// Jobs per call.
const CHUNK: usize = 100;

/// One job to look at, or to move if it is still as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconcile {
    /// Its key.
    pub key: String,
    /// What a look answered, and where the job belongs (`None`: in no index).
    pub mend: Option<(Vec<u8>, Option<State>)>,
}

/// What was found, or done.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciled {
    /// How it stands.
    Seen {
        /// Every index that it is in.
        states: Vec<State>,
        /// To send back with a move.
        seen: Vec<u8>,
        /// Its record; a document that lives apart from it is not loaded.
        record: Record,
        /// Its document is gone for good.
        is_receipt: bool,
    },
    /// It is where it belongs now.
    Mended,
    /// It moved meanwhile: nothing was done.
    Changed,
}

impl Reconciled {
    /// As a look found it.
    pub(crate) fn seen(key: &str, states: Vec<State>, seen: Vec<u8>, record: &[u8]) -> Self {
        let is_receipt = record.get(1).is_some_and(|flags| flags & RECEIPT != 0);
        Self::Seen { states, seen, record: Record::parse(key, record, b""), is_receipt }
    }

    fn placement(&self) -> Placement {
        let Self::Seen { states, record, is_receipt, .. } = self else { return Placement::Right };
        let kept = match record {
            Record::Missing => Kept::Missing,
            Record::Job(job) if *is_receipt => Kept::Receipt(job),
            Record::Job(job) => Kept::Job(job),
            Record::Newer(_) | Record::Odd => Kept::Unreadable,
        };
        placement(states, kept)
    }
}

/// How far a walk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walk {
    /// Through the records, by the cursor of `SCAN`.
    Records(u64),
    /// Through the entries of an index.
    Index(State, Cursor),
}

impl Walk {
    /// From the start.
    pub const START: Self = Self::Records(0);

    fn behind_records(cursor: u64) -> Option<Self> {
        if cursor == 0 {
            Some(Self::Index(State::Queued, Cursor::default()))
        } else {
            Some(Self::Records(cursor))
        }
    }

    fn behind_index(state: State) -> Option<Self> {
        let next = State::ALL.into_iter().find(|other| other.number() > state.number())?;
        Some(Self::Index(next, Cursor::default()))
    }
}

/// One step of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Where to go on; `None`: the walk is over.
    pub next: Option<Walk>,
    /// How many jobs were looked at.
    pub examined: usize,
    /// What stood wrong: the key, where it was found, and where it belongs (`None`: in no index).
    pub wrong: Vec<(String, Vec<State>, Option<State>)>,
}

impl RedisStore {
    /// Looks at up to about a hundred jobs of a class; with `mends` those that stand wrong are moved, each only if
    /// nobody moved it meanwhile. Every job that stays for the length of a walk is looked at in it.
    pub async fn reconcile_step(&self, class: &ClassRef, walk: &Walk, mends: bool) -> Result<Step> {
        let (next, keys) = match walk {
            Walk::Records(cursor) => {
                let (cursor, keys) = self.scan_records(class, *cursor, CHUNK).await?;
                (Walk::behind_records(cursor), keys)
            }
            Walk::Index(state, cursor) => self.scan_index(class, *state, cursor).await?,
        };
        let mut step = Step { next, examined: keys.len(), wrong: Vec::new() };
        for chunk in keys.chunks(CHUNK) {
            step.wrong.extend(self.put_right(class, chunk, mends).await?);
        }
        Ok(step)
    }

    /// Of an index only entries without a record: the others were met on the way through the records.
    async fn scan_index(
        &self,
        class: &ClassRef,
        state: State,
        cursor: &Cursor,
    ) -> Result<(Option<Walk>, Vec<String>)> {
        let page = self.list(class, state, cursor, CHUNK).await?;
        let next = match page.last() {
            Some(last) => Some(Walk::Index(state, Cursor { score_ms: last.score_ms, key: last.key.clone() })),
            None => Walk::behind_index(state),
        };
        let bare = page.into_iter().filter(|entry| entry.record == Record::Missing);
        Ok((next, bare.map(|entry| entry.key).collect()))
    }

    async fn put_right(
        &self,
        class: &ClassRef,
        keys: &[String],
        mends: bool,
    ) -> Result<Vec<(String, Vec<State>, Option<State>)>> {
        // SCAN may name a key twice.
        let mut named = HashSet::new();
        let looks: Vec<Reconcile> = keys
            .iter()
            .filter(|key| named.insert(key.as_str()))
            .map(|key| Reconcile { key: key.clone(), mend: None })
            .collect();
        let (mut moves, mut wrong) = (Vec::new(), Vec::new());
        for (look, found) in looks.iter().zip(self.reconcile(class, &looks).await?) {
            let target = match found.placement() {
                Placement::Right => continue,
                Placement::Out => None,
                Placement::Into(state) => Some(state),
            };
            let Reconciled::Seen { states, seen, .. } = found else { continue };
            moves.push(Reconcile { key: look.key.clone(), mend: Some((seen, target)) });
            wrong.push((look.key.clone(), states, target));
        }
        if !mends || moves.is_empty() {
            return Ok(wrong);
        }
        let mended = self.reconcile(class, &moves).await?;
        let mut mended = mended.into_iter().map(|word| word == Reconciled::Mended);
        wrong.retain(|_| mended.next().unwrap_or(false));
        Ok(wrong)
    }
}
