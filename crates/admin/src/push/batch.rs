//! The items of one request: gathered per class, pushed in small chunks, answered in order.

use super::check::{Checked, check};
use super::row::{Row, Status};
use crate::classes::{App, Known};
use paceline_store::{NewJob, Store, StoreError};
use std::collections::BTreeMap;

/// What one call of the push script takes: about half a ms of Redis's time.
const CHUNK_JOBS: usize = 50;
/// Large documents go in smaller chunks.
const CHUNK_BYTES: usize = 1 << 20;

/// Items of one class that Redis does not have yet.
struct Gathered<'a> {
    known: &'a Known,
    jobs: Vec<NewJob>,
    /// The row of each job.
    rows: Vec<usize>,
    bytes: usize,
    /// Why the class takes no more in this request.
    closed: Option<StoreError>,
}

/// The items of one request.
pub(super) struct Batch<'a> {
    app: &'a App,
    rows: Vec<Row>,
    gathered: BTreeMap<&'a str, Gathered<'a>>,
    /// A failure of Redis as a whole: nothing more is tried in this request.
    failure: Option<StoreError>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(app: &'a App) -> Self {
        Self { app, rows: Vec::new(), gathered: BTreeMap::new(), failure: None }
    }

    /// Checks an item and gathers it; pushes its class's chunk once it is full.
    pub(super) async fn add(&mut self, index: usize, item: &[u8]) {
        let Checked { known, job, not_before_ms } = match check(self.app, item) {
            Ok(checked) => checked,
            Err(refused) => return self.rows.push(Row::refused(index, refused)),
        };
        let row = self.rows.len();
        self.rows.push(Row::open(index, known.name(), job.key.as_str(), not_before_ms));
        let class = self.gathered.entry(known.name()).or_insert_with(|| Gathered {
            known,
            jobs: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
            closed: None,
        });
        class.bytes += job.document.len();
        class.jobs.push(job);
        class.rows.push(row);
        if class.jobs.len() >= CHUNK_JOBS || class.bytes >= CHUNK_BYTES {
            self.flush_class(known.name()).await;
        }
    }

    /// Pushes everything that is gathered.
    pub(super) async fn flush(&mut self) {
        let classes: Vec<&str> = self.gathered.keys().copied().collect();
        for class in classes {
            self.flush_class(class).await;
        }
    }

    /// Why items are unavailable, where some are.
    pub(super) fn failure(&self) -> Option<StoreError> {
        self.failure.clone().or_else(|| self.gathered.values().find_map(|class| class.closed.clone()))
    }

    /// Every item's answer, in order.
    pub(super) fn into_rows(self) -> Vec<Row> {
        for row in &self.rows {
            let status = match row.status {
                Status::Created => "created",
                Status::Duplicate => "duplicate",
                Status::Conflict => "conflict",
                Status::Invalid => "invalid",
                Status::Unavailable => "unavailable",
            };
            let class = row.class().unwrap_or("unknown").to_owned();
            metrics::counter!("paceline_pushed_total", "class" => class, "status" => status).increment(1);
        }
        self.rows
    }

    async fn flush_class(&mut self, class: &str) {
        let Some(gathered) = self.gathered.get_mut(class) else { return };
        let (jobs, rows) = (std::mem::take(&mut gathered.jobs), std::mem::take(&mut gathered.rows));
        gathered.bytes = 0;
        if jobs.is_empty() {
            return;
        }
        let answer = match self.failure.as_ref().or(gathered.closed.as_ref()) {
            Some(error) => Err(error.clone()),
            None => {
                let known = gathered.known;
                self.app.declared(known, || self.app.store.push(&known.at, &jobs)).await
            }
        };
        match answer {
            Ok(pushed) => rows.iter().zip(pushed).for_each(|(&row, pushed)| self.rows[row].settle(pushed)),
            Err(error) => {
                let field = is_of_class(&error).then_some("class");
                rows.iter().for_each(|&row| self.rows[row].fail(field, public(&error)));
                if is_of_class(&error) { gathered.closed = Some(error) } else { self.failure = Some(error) }
            }
        }
    }
}

/// The failure is about one class; the others may still take jobs.
fn is_of_class(error: &StoreError) -> bool {
    matches!(error, StoreError::Full { .. } | StoreError::Moving)
}

/// Why, without addresses.
fn public(error: &StoreError) -> String {
    match error {
        StoreError::Full { .. } | StoreError::Moving | StoreError::OutOfMemory => error.to_string(),
        _ => "Redis is not available: it is not known to be stored".into(),
    }
}
