//! A walk over jobs of some classes and states, in bounded steps, with a cursor that another call takes up.

use crate::classes::Known;
use crate::problem::Problem;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use paceline_core::State;
use paceline_store::{Cursor, Listed, RedisStore, Store};
use std::collections::VecDeque;

/// No call looks at more records.
pub(crate) const MAX_EXAMINED: usize = 1_000;
/// What one call of the list script takes.
const PAGE_JOBS: usize = 200;

/// A walk: class by class, state by state, oldest first. Jobs that leave meanwhile do not shift it.
pub(crate) struct Walk<'a> {
    /// The indexes to walk.
    indexes: Vec<(&'a Known, State)>,
    at: usize,
    after: Cursor,
    page: VecDeque<Listed>,
    /// Nothing is behind the page.
    is_last_page: bool,
    examined: usize,
}

/// A job met on a walk.
pub(crate) struct Met<'a> {
    pub(crate) known: &'a Known,
    pub(crate) state: State,
    pub(crate) listed: Listed,
}

impl<'a> Walk<'a> {
    /// From the start, or from where `cursor` says.
    pub(crate) fn new(
        classes: &[&'a Known],
        states: &[State],
        cursor: Option<&str>,
    ) -> Result<Self, Problem> {
        let indexes: Vec<(&Known, State)> =
            classes.iter().flat_map(|&known| states.iter().map(move |&state| (known, state))).collect();
        let mut walk = Self {
            indexes,
            at: 0,
            after: Cursor::default(),
            page: VecDeque::new(),
            is_last_page: false,
            examined: 0,
        };
        if let Some(cursor) = cursor {
            walk.take_up(cursor).ok_or_else(|| {
                Problem::invalid("cursor", "is not one that this query gave; start again without it")
            })?;
        }
        Ok(walk)
    }

    /// The next job; `None` at the end, or once the call has looked at enough.
    pub(crate) async fn next(&mut self, store: &RedisStore) -> Result<Option<Met<'a>>, Problem> {
        loop {
            let Some(&(known, state)) = self.indexes.get(self.at) else { return Ok(None) };
            if let Some(listed) = self.page.pop_front() {
                self.examined += 1;
                self.after = Cursor { score_ms: listed.score_ms, key: listed.key.clone() };
                self.leave_if_over();
                return Ok(Some(Met { known, state, listed }));
            }
            let wanted = PAGE_JOBS.min(MAX_EXAMINED.saturating_sub(self.examined));
            if wanted == 0 {
                return Ok(None);
            }
            self.page = store.list(&known.at, state, &self.after, wanted).await?.into();
            self.is_last_page = self.page.len() < wanted;
            self.leave_if_over();
        }
    }

    /// How many records were looked at.
    pub(crate) fn examined(&self) -> usize {
        self.examined
    }

    /// Where another call goes on; `None`: everything was seen.
    pub(crate) fn next_cursor(&self) -> Option<String> {
        let (known, state) = self.indexes.get(self.at)?;
        let Cursor { score_ms, key } = &self.after;
        Some(URL_SAFE_NO_PAD.encode(format!("{}\n{state}\n{score_ms}\n{key}", known.name())))
    }

    fn leave_if_over(&mut self) {
        if self.page.is_empty() && self.is_last_page {
            self.at += 1;
            self.after = Cursor::default();
            self.is_last_page = false;
        }
    }

    fn take_up(&mut self, cursor: &str) -> Option<()> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let mut parts = text.splitn(4, '\n');
        let (class, state) = (parts.next()?, State::parse(parts.next()?)?);
        self.at = self.indexes.iter().position(|(known, of)| known.name() == class && *of == state)?;
        self.after = Cursor { score_ms: parts.next()?.parse().ok()?, key: parts.next()?.to_owned() };
        Some(())
    }
}
