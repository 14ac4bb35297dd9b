//! `GET /v1/dead-letters`: jobs that wait for a person, with the last thing that happened to each.
//!
//! `class`, `state` (`deferred`, `unconfirmed`, `failed`, separated by commas; without it the first two),
//! `reason` and `code` (equal to those of the last attempt), `limit` and `cursor`. By class, then state, oldest
//! first. A call looks at no more than 1,000 records and says at how many, so a page may be short, or empty,
//! and still have a `next_cursor`. Pages carry no payloads.

use crate::classes::App;
use crate::cursor::{Met, Walk};
use crate::fields::{Fields, InQuery};
use crate::problem::Problem;
use crate::time::rfc3339;
use axum::Json;
use axum::extract::State;
use paceline_core::State as JobState;
use paceline_core::history::Attempt;
use paceline_store::Record;
use serde::Serialize;
use std::sync::Arc;

const DEFAULT_LIMIT: u64 = 100;

/// Which dead letters are meant.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    reason: Option<String>,
    code: Option<String>,
}

impl Filter {
    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self { reason: fields.text("reason")?, code: fields.text("code")? })
    }

    /// Whether the last attempt is of that code and reason. A record that cannot be read has none.
    pub(crate) fn matches(&self, record: &Record) -> bool {
        let last = last_attempt(record);
        let is = |wanted: &Option<String>, found: fn(&Attempt) -> &str| {
            wanted.as_deref().is_none_or(|wanted| last.is_some_and(|last| found(last) == wanted))
        };
        is(&self.reason, |last| &last.reason) && is(&self.code, |last| &last.code)
    }
}

/// The states that are asked for: those that wait for a person, and `failed` only on request.
pub(crate) fn states(fields: &mut Fields) -> Result<Vec<JobState>, Problem> {
    let wrong = || Problem::invalid("state", "must be of deferred, unconfirmed, failed");
    let asked = fields.texts("state", 3).map_err(|_| wrong())?;
    let Some(words) = asked else { return Ok(vec![JobState::Deferred, JobState::Unconfirmed]) };
    let is_meant = |state: &JobState| state.is_dead_letter() || *state == JobState::Failed;
    let mut states: Vec<JobState> = words
        .iter()
        .map(|word| JobState::parse(word).filter(is_meant).ok_or_else(wrong))
        .collect::<Result<_, _>>()?;
    states.sort_unstable();
    states.dedup();
    Ok(states)
}

/// What happened last, where it can be read.
pub(crate) fn last_attempt(record: &Record) -> Option<&Attempt> {
    match record {
        Record::Job(job) => job.history.last(),
        _ => None,
    }
}

/// One dead letter.
#[derive(Debug, Serialize)]
pub(crate) struct DeadLetter {
    pub(crate) class: String,
    pub(crate) key: String,
    pub(crate) state: JobState,
    pub(crate) since: String,
    pub(crate) since_ms: u64,
    pub(crate) code: String,
    pub(crate) outcome: String,
    pub(crate) reason: String,
    pub(crate) rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(flatten)]
    pub(crate) job: Option<Counted>,
}

/// What the record of one counts.
#[derive(Debug, Serialize)]
pub(crate) struct Counted {
    pub(crate) attempts: u16,
    pub(crate) spent: u8,
    pub(crate) throttles: u16,
    pub(crate) lapses: u8,
    pub(crate) replays: u16,
    pub(crate) ambiguous: bool,
    pub(crate) campaign: String,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
}

impl DeadLetter {
    fn of(met: Met<'_>) -> Self {
        let last = last_attempt(&met.listed.record).cloned().unwrap_or_default();
        Self {
            class: met.known.name().to_owned(),
            state: met.state,
            since: rfc3339(met.listed.score_ms),
            since_ms: met.listed.score_ms,
            code: last.code,
            outcome: last.outcome,
            reason: last.reason,
            rule: last.rule,
            problem: met.listed.record.problem(),
            job: Counted::of(met.listed.record),
            key: met.listed.key,
        }
    }
}

impl Counted {
    fn of(record: Record) -> Option<Self> {
        let Record::Job(job) = record else { return None };
        Some(Self {
            attempts: job.counters.attempts,
            spent: job.counters.spent,
            throttles: job.counters.throttles,
            lapses: job.counters.lapses,
            replays: job.replays,
            ambiguous: job.flags.ambiguous,
            campaign: job.campaign,
            created_at: rfc3339(job.created_at_ms),
            expires_at: job.expires_at_ms.map(rfc3339),
        })
    }
}

/// A page.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) items: Vec<DeadLetter>,
    pub(crate) examined: usize,
    pub(crate) next_cursor: Option<String>,
}

/// The route.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    InQuery(fields): InQuery,
) -> Result<Json<Page>, Problem> {
    Ok(Json(read(&app, fields).await?))
}

/// A page of dead letters.
pub(crate) async fn read(app: &App, mut fields: Fields) -> Result<Page, Problem> {
    let class = fields.text("class")?;
    let states = states(&mut fields)?;
    let filter = Filter::take(&mut fields)?;
    let limit = fields.whole("limit", 1..=1_000)?.unwrap_or(DEFAULT_LIMIT) as usize;
    let cursor = fields.text("cursor")?;
    fields.finish()?;
    let classes = app.classes(class.as_deref())?;
    let mut walk = Walk::new(&classes, &states, cursor.as_deref())?;
    let mut items = Vec::new();
    while items.len() < limit {
        let Some(met) = walk.next(&app.store).await? else { break };
        if filter.matches(&met.listed.record) {
            items.push(DeadLetter::of(met));
        }
    }
    Ok(Page { items, examined: walk.examined(), next_cursor: walk.next_cursor() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_core::{JobKey, job::Job};

    #[test]
    fn a_filter_wants_all_it_names_and_an_unreadable_record_matches_none() {
        let mut job = Job::new(JobKey::new("k").unwrap(), Vec::new(), 0);
        job.history.push(Attempt {
            at_ms: 1,
            code: "503".into(),
            reason: "busy".into(),
            ..Attempt::default()
        });
        let record = Record::Job(Box::new(job));
        let filter = |reason: Option<&str>, code: Option<&str>| Filter {
            reason: reason.map(str::to_owned),
            code: code.map(str::to_owned),
        };
        assert!(filter(Some("busy"), Some("503")).matches(&record));
        assert!(!filter(Some("busy"), Some("500")).matches(&record));
        assert!(filter(None, None).matches(&Record::Odd));
        assert!(!filter(None, Some("503")).matches(&Record::Odd));
    }
}
