//! `GET /v1/queues/{class}/explain?key=`: why not now, and when at the earliest, from the gates that claim goes through.

use crate::classes::{App, Known};
use crate::fields::InQuery;
use crate::problem::Problem;
use crate::time::rfc3339;
use axum::Json;
use axum::extract::{Path, State};
use paceline_core::State as JobState;
use paceline_store::{Explained, Store};
use serde::Serialize;
use std::sync::Arc;

/// The answer, for people and machines.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    class: String,
    key: Option<String>,
    /// Where the job is, and how many stand before it there.
    pub(crate) state: Option<JobState>,
    pub(crate) rank: Option<u64>,
    /// The term that binds: `hold:…`, `max_in_flight`, `quota`, `rate`, `shed`, `not_due`, `empty`, or nothing.
    pub(crate) term: String,
    /// It in words.
    pub(crate) words: String,
    /// At the earliest; `null`: nobody can tell, because something has to change first.
    earliest: Option<String>,
    pub(crate) earliest_ms: Option<u64>,
    pub(crate) pace_per_s: f64,
}

/// The route.
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    Path(class): Path<String>,
    InQuery(mut fields): InQuery,
) -> Result<Json<Explanation>, Problem> {
    let key = fields.text("key")?;
    fields.finish()?;
    Ok(Json(read(&app, app.class(&class)?, key).await?))
}

/// Why the class's next job, or the job of that key, does not go now.
pub(crate) async fn read(app: &App, known: &Known, key: Option<String>) -> Result<Explanation, Problem> {
    let explained = app.declared(known, || app.store.explain(&known.at, key.as_deref())).await?;
    let explained = explained.ok_or_else(|| Problem::missing("key", "there is no such job"))?;
    let mut pace_per_s = f64::INFINITY;
    for at in &known.at.budgets {
        pace_per_s = pace_per_s.min(app.store.pace(&known.at, at).await?.pace_per_s);
    }
    Ok(of(known.name().to_owned(), key, &explained, pace_per_s))
}

fn of(class: String, key: Option<String>, found: &Explained, pace_per_s: f64) -> Explanation {
    let is_over = found.state.is_some_and(|state| !state.is_waiting());
    let due_ms = match (&key, found.next_due_ms) {
        (Some(_), _) => Some(found.score_ms.saturating_sub(found.now_ms)),
        (None, due_ms) => due_ms,
    };
    let term = match due_ms {
        _ if is_over => String::new(),
        None => "empty".into(),
        Some(_) if !found.term.is_empty() => found.term.clone(),
        Some(1..) => "not_due".into(),
        Some(0) => String::new(),
    };
    let before_ms = (found.rank.filter(|_| key.is_some()).unwrap_or(0) as f64 / pace_per_s * 1_000.0) as u64;
    let earliest_ms = match (found.wait_ms, due_ms) {
        (Some(wait_ms), Some(due_ms)) if !is_over => Some(found.now_ms + wait_ms.max(due_ms) + before_ms),
        _ => None,
    };
    let words = words(&term, found, key.is_some());
    let (state, rank) = (found.state, found.rank);
    let earliest = earliest_ms.map(rfc3339);
    Explanation { class, key, state, rank, term, words, earliest, earliest_ms, pace_per_s }
}

fn words(term: &str, found: &Explained, is_job: bool) -> String {
    let text = match term {
        "hold:pause" => "a person paused it; resume lifts that",
        "hold:retry_after" => "the remote side asked to wait",
        "hold:quota" => "the remote side says that its allowance is used up",
        "hold:suspect" => "too many refusals in a row: the key or the destination is probably wrong",
        "hold:outage" => "the remote side does not answer; one probe at a time finds out when it does",
        "hold:window" => "it is outside its send window",
        "max_in_flight" => "as many requests are in flight as the budget allows",
        "quota" => "a quota of the budget is used up",
        "rate" => "its budget's next token is not there yet: this is the pace",
        "shed" => "a class that is shed later has the shared part of the budget; its own share is used up",
        "not_due" => "it is not due yet",
        "empty" => "nothing waits",
        _ => match found.state {
            Some(JobState::InFlight) => "it is in flight",
            Some(state) if !state.is_waiting() => return format!("it is {state}"),
            _ => "nothing stands in its way; a worker with a free slot takes it",
        },
    };
    match found.rank {
        Some(rank) if is_job && rank > 0 && !term.is_empty() => format!("{text}; {rank} stand before it"),
        _ => text.to_owned(),
    }
}
