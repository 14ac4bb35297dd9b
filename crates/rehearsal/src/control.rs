//! The sandbox's own paths: read the ledger, change the scenario, start afresh.

use crate::front::Shared;
use crate::ledger::{LedgerEntry, LedgerSummary};
use crate::scenario::Scenario;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use paceline_core::Fault;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

const PAGE: usize = 1_000;
const MAX_PAGE: usize = 10_000;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/_sandbox/ledger", get(show_ledger))
        .route("/_sandbox/scenario", get(show_scenario).put(change_scenario))
        .route("/_sandbox/reset", post(reset))
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "No such path", json!({})) })
        .with_state(shared)
}

/// The totals, and with `full=1` a page of entries.
#[derive(Serialize)]
struct LedgerView {
    #[serde(flatten)]
    summary: LedgerSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<LedgerEntry>>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<usize>,
}

async fn show_ledger(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<LedgerView>, Refused> {
    let full = number(&query, "full", 0)? > 0;
    let cursor = number(&query, "cursor", 0)?;
    let limit = number(&query, "limit", PAGE)?.clamp(1, MAX_PAGE);
    let (provider, _) = shared.provider();
    let summary = provider.summary();
    let entries = full.then(|| provider.page(cursor, limit).to_vec());
    // A full page may be the last one: the next is then empty, and has no successor.
    let next_cursor = entries.as_ref().filter(|page| page.len() == limit).map(|_| cursor + limit);
    Ok(Json(LedgerView { summary, entries, next_cursor }))
}

fn number(query: &HashMap<String, String>, field: &str, default: usize) -> Result<usize, Fault> {
    let Some(text) = query.get(field) else { return Ok(default) };
    text.parse().map_err(|_| Fault::new(field, format!("{text:?} is not a whole number")))
}

async fn show_scenario(State(shared): State<Arc<Shared>>) -> Json<Scenario> {
    Json(shared.provider().0.scenario().clone())
}

/// Takes a whole scenario or some of its fields; null sets a field to its default. All or nothing.
async fn change_scenario(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<Json<Scenario>, Refused> {
    let patch: Value =
        serde_json::from_slice(&body).map_err(|error| Fault::new("scenario", error.to_string()))?;
    let (mut provider, now) = shared.provider();
    provider.patch(patch, now)?;
    Ok(Json(provider.scenario().clone()))
}

async fn reset(State(shared): State<Arc<Shared>>) -> StatusCode {
    let (mut provider, now) = shared.provider();
    provider.reset(now);
    StatusCode::NO_CONTENT
}

/// What was wrong with a control request, as RFC 9457 has it.
struct Refused(Fault);

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Fault { field, problem: detail } = self.0;
        problem(StatusCode::BAD_REQUEST, "Not understood", json!({ "field": field, "detail": detail }))
    }
}

fn problem(status: StatusCode, title: &str, mut more: Value) -> Response {
    more["type"] = "about:blank".into();
    more["title"] = title.into();
    more["status"] = status.as_u16().into();
    (status, [(CONTENT_TYPE, "application/problem+json")], more.to_string()).into_response()
}
