//! Queues: how deep, how old, held by whom; pause and resume.

use crate::access::Caller;
use crate::classes::{App, Known};
use crate::fields::{InBody, InQuery};
use crate::problem::Problem;
use crate::time::rfc3339;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use paceline_core::budget::Limits;
use paceline_core::decide::HoldCause;
use paceline_core::{Name, State as JobState};
use paceline_store::{Depths, Held, Hold, Store};
use serde::Serialize;
use std::sync::Arc;

/// The longest pause with an end, in s: a year. Without an end it stands until somebody resumes.
const MAX_PAUSE_S: u64 = 31_536_000;

/// A hold that stands.
#[derive(Debug, Serialize)]
pub(crate) struct HoldView {
    pub(crate) cause: HoldCause,
    /// `null`: until it is lifted.
    until: Option<String>,
    pub(crate) until_ms: Option<u64>,
    pub(crate) by: String,
}

impl HoldView {
    pub(crate) fn of(hold: &Hold) -> Self {
        Self {
            cause: hold.cause,
            until: hold.until_ms.map(rfc3339),
            until_ms: hold.until_ms,
            by: hold.by.clone(),
        }
    }
}

/// A budget, as configured, and its hold.
#[derive(Debug, Serialize)]
struct BudgetView {
    name: Name,
    rate: String,
    burst: u32,
    max_in_flight: u32,
    hold: Option<HoldView>,
}

impl BudgetView {
    fn of(name: &Name, limits: &Limits, hold: Option<&Hold>) -> Self {
        Self {
            name: name.clone(),
            rate: limits.rate.to_string(),
            burst: limits.burst,
            max_in_flight: limits.max_in_flight,
            hold: hold.map(HoldView::of),
        }
    }
}

/// How deep a class is.
#[derive(Debug, Serialize)]
pub(crate) struct QueueView {
    class: Name,
    queued: u64,
    /// Of the queued, those that are not due yet.
    scheduled: u64,
    pending: u64,
    waiting: u64,
    in_flight: u64,
    submitted: u64,
    failed: u64,
    deferred: u64,
    unconfirmed: u64,
    expired: u64,
    cancelled: u64,
    done: u64,
    oldest_due_age_ms: Option<u64>,
    oldest_pending_age_ms: Option<u64>,
    hold: Option<HoldView>,
    budgets: Vec<BudgetView>,
}

impl QueueView {
    fn of(known: &Known, depths: &Depths) -> Self {
        let holds = |index: usize| depths.holds.get(index).and_then(Option::as_ref);
        let budgets = known.at.budgets.iter().enumerate();
        Self {
            class: known.config.name.clone(),
            queued: depths.of(JobState::Queued),
            scheduled: depths.scheduled,
            pending: depths.of(JobState::Pending),
            waiting: depths.waiting(),
            in_flight: depths.of(JobState::InFlight),
            submitted: depths.of(JobState::Submitted),
            failed: depths.of(JobState::Failed),
            deferred: depths.of(JobState::Deferred),
            unconfirmed: depths.of(JobState::Unconfirmed),
            expired: depths.of(JobState::Expired),
            cancelled: depths.of(JobState::Cancelled),
            done: JobState::ALL.iter().filter(|state| state.is_done()).map(|&state| depths.of(state)).sum(),
            oldest_due_age_ms: depths.oldest_due_ms,
            oldest_pending_age_ms: depths.oldest_pending_ms,
            hold: holds(0).map(HoldView::of),
            budgets: budgets
                .map(|(index, budget)| BudgetView::of(&budget.name, &budget.limits, holds(index + 1)))
                .collect(),
        }
    }

    async fn read(app: &App, known: &Known) -> Result<Self, Problem> {
        Ok(Self::of(known, &app.store.depths(&known.at).await?))
    }
}

/// Every class.
#[derive(Debug, Serialize)]
pub(crate) struct Queues {
    queues: Vec<QueueView>,
}

/// `GET /v1/queues`
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    InQuery(fields): InQuery,
) -> Result<Json<Queues>, Problem> {
    fields.finish()?;
    let mut queues = Vec::new();
    for known in app.known() {
        queues.push(QueueView::read(&app, known).await?);
    }
    Ok(Json(Queues { queues }))
}

/// `GET /v1/queues/{class}`
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(class): Path<String>,
    InQuery(fields): InQuery,
) -> Result<Json<QueueView>, Problem> {
    fields.finish()?;
    Ok(Json(QueueView::read(&app, app.class(&class)?).await?))
}

/// A person's order: a pause with its end, or the lifting of whatever hold is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub(crate) cause: Option<HoldCause>,
    pub(crate) delay_ms: Option<u64>,
}

pub(crate) const RESUME: Order = Order { cause: None, delay_ms: None };

pub(crate) fn pause_order(InBody(mut fields): InBody) -> Result<Order, Problem> {
    let for_s = fields.whole("for_s", 1..=MAX_PAUSE_S)?;
    fields.finish()?;
    Ok(Order { cause: Some(HoldCause::Pause), delay_ms: for_s.map(|seconds| seconds * 1_000) })
}

/// `POST /v1/queues/{class}/pause` `{for_s?}`: nothing more is claimed; what is in flight ends as it does.
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(class): Path<String>,
    body: InBody,
) -> Result<Json<QueueView>, Problem> {
    hold_class(&app, &caller, &class, pause_order(body)?).await.map(Json)
}

/// `POST /v1/queues/{class}/resume`: lifts whatever hold is there.
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(class): Path<String>,
    InBody(fields): InBody,
) -> Result<Json<QueueView>, Problem> {
    fields.finish()?;
    hold_class(&app, &caller, &class, RESUME).await.map(Json)
}

pub(crate) async fn hold_class(
    app: &App,
    caller: &Caller,
    class: &str,
    order: Order,
) -> Result<QueueView, Problem> {
    let known = app.class(class)?;
    app.store.hold(&known.at, Held::Class, order.cause, order.delay_ms, &caller.name).await?;
    audit(caller, "class", class, order);
    QueueView::read(app, known).await
}

/// A person may lift any hold, and it is written down who did.
pub(crate) fn audit(caller: &Caller, what: &str, name: &str, order: Order) {
    let action = if order.cause.is_some() { "paused" } else { "resumed" };
    tracing::info!(by = caller.name, what, name, delay_ms = order.delay_ms, "{action}");
}
