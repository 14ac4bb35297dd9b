//! `POST /v1/jobs`: one job, an array of them, or NDJSON.
//!
//! The stored document is the item's bytes, byte for byte. An array or NDJSON is answered item by item, in
//! order, with 200: `created`, `duplicate` (the same content is there: its state), `conflict` (other content
//! is there: nothing was changed), or `invalid` (the field at fault). A single job has the same words as a
//! status: 201, 200, 422, and 400 or 413.
//!
//! Where Redis fails, the answer is a problem (429, 503, 507, with Retry-After) that carries the results all
//! the same: what is `created` or `duplicate` is stored; what is `unavailable` is not known to be stored.
//! Repeating the whole request is safe for every item that has a key; give jobs keys.

mod batch;
mod check;
mod lines;
mod row;

use crate::classes::App;
use crate::incoming::{Form, Incoming};
use crate::problem::Problem;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use batch::Batch;
use lines::Lines;
use row::{Results, Status};
use serde_json::value::RawValue;
use std::sync::Arc;

/// No request holds more items; results are kept until its end.
const MAX_ITEMS: usize = 100_000;

/// The route.
pub(crate) async fn push(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let incoming = Incoming::new(body, app.config.admin.max_body_bytes);
    match Form::of(&parts.headers)? {
        Form::Json => json(&app, incoming).await,
        Form::Ndjson => ndjson(&app, incoming).await,
    }
}

async fn json(app: &App, incoming: Incoming) -> Result<Response, Problem> {
    let body = incoming.whole().await?;
    let body = body.trim_ascii();
    match body.first() {
        Some(b'{') => one(app, body).await,
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_slice(body)
                .map_err(|error| Problem::invalid("body", format!("is not a JSON array: {error}")))?;
            if items.len() > MAX_ITEMS {
                return Err(too_many());
            }
            let mut batch = Batch::new(app);
            for (index, item) in items.iter().enumerate() {
                batch.add(index, item.get().as_bytes()).await;
            }
            batch.flush().await;
            many(batch, None)
        }
        _ => Err(Problem::invalid("body", "must be a JSON object, or an array of them")),
    }
}

async fn one(app: &App, item: &[u8]) -> Result<Response, Problem> {
    let mut batch = Batch::new(app);
    batch.add(0, item).await;
    batch.flush().await;
    let failure = batch.failure();
    let mut row = batch.into_rows().pop().expect("one item has one row");
    row.index = None;
    match row.status {
        Status::Created => {
            let location = row.location();
            Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(row)).into_response())
        }
        Status::Duplicate => Ok(Json(row).into_response()),
        Status::Conflict => {
            let detail = "the key is taken by a job with other content; nothing was changed";
            let problem =
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).kind("conflict").field("key");
            Err(problem.with_all(&row))
        }
        Status::Invalid => Err(row.into_refusal()),
        Status::Unavailable => {
            let failure = failure.expect("what is unavailable has a cause");
            Err(Problem::from(failure).with_all(&row))
        }
    }
}

/// Lines are pushed while the body arrives, so that a large import needs no large memory.
async fn ndjson(app: &App, mut incoming: Incoming) -> Result<Response, Problem> {
    let mut batch = Batch::new(app);
    let mut lines = Lines::default();
    let broken = loop {
        let piece = match incoming.next().await {
            Ok(piece) => piece,
            Err(problem) => break Some(problem),
        };
        let is_last = piece.is_none();
        lines.feed(piece.as_deref().unwrap_or(b"\n"));
        while let Some((index, line)) = lines.next() {
            if index >= MAX_ITEMS {
                return many(batch, Some(too_many()));
            }
            batch.add(index, &line).await;
        }
        if is_last {
            break None;
        }
    };
    // A body that broke off is refused as far as that is still possible: what was not stored yet is not.
    if broken.is_none() {
        batch.flush().await;
    }
    many(batch, broken)
}

fn many(batch: Batch<'_>, broken: Option<Problem>) -> Result<Response, Problem> {
    let problem = broken.or_else(|| batch.failure().map(Problem::from));
    let results = Results::of(batch.into_rows());
    match problem {
        None => Ok(Json(results).into_response()),
        Some(problem) => Err(problem.with_all(results)),
    }
}

fn too_many() -> Problem {
    let detail = format!("a request holds at most {MAX_ITEMS} items; send the others in another");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).kind("too_large").field("body")
}
