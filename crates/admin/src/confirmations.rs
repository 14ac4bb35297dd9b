//! `POST /v1/confirmations`: a person has looked at the provider and says what became of jobs that nobody else can tell
//! about.

use crate::access::Caller;
use crate::classes::App;
use crate::fields::InBody;
use crate::jobs::check_keys;
use crate::problem::Problem;
use axum::extract::State;
use axum::{Extension, Json};
use paceline_core::history::{Attempt, History};
use paceline_store::{Confirmation, Confirmed, Store};
use serde::Serialize;
use std::sync::Arc;

/// Jobs in one request.
const MAX_KEYS: usize = 200;
/// The longest id of a message.
const MAX_ID_BYTES: usize = 200;

/// What became of one.
#[derive(Debug, Serialize)]
struct Row {
    key: String,
    /// `confirmed`, `moved` (nobody has to decide about it), `missing`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<paceline_core::State>,
}

/// What became of them, in order.
#[derive(Debug, Serialize)]
pub(crate) struct ConfirmAnswer {
    results: Vec<Row>,
}

/// `{class, keys, outcome: accepted | not_accepted, message_id?}`: accepted ones are submitted; the others are sent again
/// at once, as if they never had been.
pub(crate) async fn confirm(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    InBody(mut fields): InBody,
) -> Result<Json<ConfirmAnswer>, Problem> {
    let class = fields.required("class")?;
    let keys = fields.texts("keys", MAX_KEYS)?.ok_or_else(|| Problem::invalid("keys", "is missing"))?;
    let accepted = match fields.required("outcome")?.as_str() {
        "accepted" => true,
        "not_accepted" => false,
        _ => return Err(Problem::invalid("outcome", "must be accepted or not_accepted")),
    };
    let message_id = fields.text("message_id")?;
    fields.finish()?;
    check_keys(&keys)?;
    if message_id.as_ref().is_some_and(|id| id.len() > MAX_ID_BYTES || !accepted) {
        return Err(Problem::invalid("message_id", "goes with accepted jobs, and has at most 200 bytes"));
    }
    let known = app.class(&class)?;
    let line = line(&app, &caller.name, accepted, message_id);
    let jobs: Vec<Confirmation> =
        keys.into_iter().map(|key| Confirmation { key, accepted, line: line.clone() }).collect();
    let confirmed = app.store.confirm(&known.at, &jobs).await?;
    tracing::info!(by = %caller.name, class, accepted, jobs = jobs.len(), "a person said what became of jobs");
    let results = jobs.into_iter().zip(confirmed).map(|(job, word)| row(job.key, word)).collect();
    Ok(Json(ConfirmAnswer { results }))
}

/// Who said so stays with the job.
fn line(app: &App, by: &str, accepted: bool, message_id: Option<String>) -> Vec<u8> {
    let mut history = History::default();
    history.push(Attempt {
        at_ms: app.store.now_ms(),
        outcome: if accepted { "accepted" } else { "not_sent" }.into(),
        reason: format!("{by} looked at the provider"),
        rule: "person".into(),
        message_id,
        ..Attempt::default()
    });
    history.to_lines()
}

fn row(key: String, word: Confirmed) -> Row {
    let (status, state) = match word {
        Confirmed::Confirmed(state) => ("confirmed", Some(state)),
        Confirmed::Moved(state) => ("moved", Some(state)),
        Confirmed::Missing => ("missing", None),
    };
    Row { key, status, state }
}
