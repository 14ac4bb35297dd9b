//! One job by its key: look, cancel, erase. A key may hold slashes; what is not `[A-Za-z0-9._~-]` or a slash
//! is percent-encoded in a path.

mod header;
pub(crate) mod view;

use crate::access::Caller;
use crate::classes::App;
use crate::fields::{InBody, InQuery};
use crate::problem::Problem;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use header::HeaderView;
use paceline_core::JobKey;
use paceline_store::{Cancelled, Erased, Store};
use serde::Serialize;
use std::sync::Arc;
use view::JobView;

/// What one call of the cancel script takes.
const CHUNK_JOBS: usize = 200;
/// No request cancels more.
const MAX_KEYS: usize = 1_000;

type InPath = Result<Path<(String, String)>, PathRejection>;

fn in_path(path: InPath) -> Result<(String, JobKey), Problem> {
    let Path((class, key)) =
        path.map_err(|_| Problem::invalid("key", "must be percent-encoded UTF-8 in the path"))?;
    Ok((class, JobKey::new(key)?))
}

/// `GET /v1/jobs/{class}/{key}`: everything that is known of a job; a viewer sees no payload. `raw=1` adds the
/// packed header in full words.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    path: InPath,
    InQuery(mut fields): InQuery,
) -> Result<Json<JobView>, Problem> {
    let (class, key) = in_path(path)?;
    let raw = fields.flag("raw")?;
    fields.finish()?;
    let known = app.class(&class)?;
    let stored = app.store.get(&known.at, key.as_str()).await?.ok_or_else(no_such_job)?;
    let header = raw.then(|| HeaderView::of(&stored.record));
    let view = JobView::of(&known.config.name, &key, stored, app.deployment_id, caller.role);
    Ok(Json(view.with_header(header)))
}

/// What became of one cancelled job.
#[derive(Debug, Serialize)]
struct CancelRow {
    class: String,
    key: String,
    status: &'static str,
    state: Option<paceline_core::State>,
}

impl CancelRow {
    fn new(class: &str, key: &str, cancelled: Cancelled) -> Self {
        let (status, state) = match cancelled {
            Cancelled::Cancelled(state) => ("cancelled", Some(state)),
            Cancelled::Marked => ("marked", Some(paceline_core::State::InFlight)),
            Cancelled::Over(state) => ("over", Some(state)),
            Cancelled::Missing => ("missing", None),
        };
        Self { class: class.to_owned(), key: key.to_owned(), status, state }
    }
}

/// `DELETE /v1/jobs/{class}/{key}`: 200 cancelled (or unconfirmed, where an attempt may have been accepted),
/// 202 in flight and marked, 409 over before. A repeat answers 200.
pub(crate) async fn cancel_one(State(app): State<Arc<App>>, path: InPath) -> Result<Response, Problem> {
    let (class, key) = in_path(path)?;
    let known = app.class(&class)?;
    let keys = [key.as_str().to_owned()];
    let cancelled = app.store.cancel(&known.at, &keys).await?.pop().unwrap_or(Cancelled::Missing);
    let row = CancelRow::new(&class, key.as_str(), cancelled);
    match cancelled {
        Cancelled::Missing => Err(no_such_job()),
        Cancelled::Marked => Ok((StatusCode::ACCEPTED, Json(row)).into_response()),
        Cancelled::Cancelled(_) | Cancelled::Over(paceline_core::State::Cancelled) => {
            Ok(Json(row).into_response())
        }
        Cancelled::Over(state) => {
            let detail = format!("the job is {state}; only what waits or is in flight can be cancelled");
            Err(Problem::new(StatusCode::CONFLICT, detail).kind("over").with_all(row))
        }
    }
}

/// What became of many.
#[derive(Debug, Serialize)]
pub(crate) struct CancelAnswer {
    results: Vec<CancelRow>,
}

/// `POST /v1/cancel` `{class, keys}`: each key answered, in order.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    InBody(mut fields): InBody,
) -> Result<Json<CancelAnswer>, Problem> {
    let class = fields.required("class")?;
    let keys = fields.texts("keys", MAX_KEYS)?.ok_or_else(|| Problem::invalid("keys", "is missing"))?;
    fields.finish()?;
    check_keys(&keys)?;
    let known = app.class(&class)?;
    let mut results = Vec::with_capacity(keys.len());
    for chunk in keys.chunks(CHUNK_JOBS) {
        let cancelled = app
            .store
            .cancel(&known.at, chunk)
            .await
            .map_err(|error| Problem::from(error).with("results", &results))?;
        results.extend(chunk.iter().zip(cancelled).map(|(key, word)| CancelRow::new(&class, key, word)));
    }
    Ok(Json(CancelAnswer { results }))
}

/// `POST /v1/erase` `{class, key}`: the content goes, the receipt stays, so that the key is still known.
pub(crate) async fn erase(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    InBody(mut fields): InBody,
) -> Result<Response, Problem> {
    let class = fields.required("class")?;
    let key = JobKey::new(fields.required("key")?)?;
    fields.finish()?;
    let known = app.class(&class)?;
    match app.store.erase(&known.at, key.as_str()).await? {
        Erased::Missing => Err(no_such_job()),
        Erased::InFlight => {
            let detail = "the job is in flight and its worker holds the content; cancel it first";
            Err(Problem::new(StatusCode::CONFLICT, detail).kind("in_flight"))
        }
        Erased::Erased(state) => {
            tracing::info!(by = caller.name, class, "a job's content was erased");
            let answer =
                serde_json::json!({ "class": class, "key": key, "status": "erased", "state": state });
            Ok(Json(answer).into_response())
        }
    }
}

/// Refuses a list that holds what cannot be a key.
pub(crate) fn check_keys(keys: &[String]) -> Result<(), Problem> {
    for (index, key) in keys.iter().enumerate() {
        JobKey::new(key.as_str())
            .map_err(|fault| Problem::invalid(&format!("keys/{index}"), fault.problem))?;
    }
    Ok(())
}

pub(crate) fn no_such_job() -> Problem {
    Problem::missing("key", "there is no such job")
}
