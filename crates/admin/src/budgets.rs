//! Budgets: pace against ceiling, what was used, why the pace changed; limits by hand, pause and resume.

use crate::access::Caller;
use crate::classes::{App, Known};
use crate::fields::{Fields, InBody, InQuery};
use crate::problem::Problem;
use crate::queues::{HoldView, Order, RESUME, audit, pause_order};
use crate::time::rfc3339;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use paceline_core::Name;
use paceline_core::budget::{Limits, Rate};
use paceline_store::{BudgetRef, BudgetState, Held, PaceDecision, Store};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// From this part of a quota on somebody should know.
pub(crate) const QUOTA_ALERT: f64 = 0.7;

/// A budget: what is configured, what is in force, what was used.
#[derive(Debug, Serialize)]
pub(crate) struct BudgetView {
    pub(crate) name: Name,
    /// As configured.
    pub(crate) rate: String,
    pub(crate) burst: u32,
    pub(crate) max_in_flight: u32,
    /// The ceiling in force, and who set it where that was a person.
    pub(crate) ceiling_per_s: f64,
    pub(crate) ceiling_burst: f64,
    pub(crate) limits_by: Option<String>,
    /// The pace in force.
    pub(crate) pace_per_s: f64,
    pub(crate) pace_burst: f64,
    pub(crate) tokens: f64,
    /// Requests a second over the last minute, and their part of the pace.
    pub(crate) attempts_per_s: f64,
    utilisation: f64,
    pub(crate) accepted: u64,
    pub(crate) throttled: u64,
    pub(crate) hold_episodes: u64,
    pub(crate) answer_ms: u64,
    pub(crate) quotas: Vec<QuotaView>,
    pub(crate) hold: Option<HoldView>,
    pub(crate) classes: Vec<Name>,
}

/// How much of a quota is used.
#[derive(Debug, Serialize)]
pub(crate) struct QuotaView {
    pub(crate) quota: String,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) share: f64,
    pub(crate) alert: bool,
}

impl BudgetView {
    pub(crate) async fn read(app: &App, known: &Known, at: &BudgetRef) -> Result<Self, Problem> {
        let state = app.declared(known, || app.store.pace(&known.at, at)).await?;
        let attempts_per_s = attempts_per_s(app, at).await?;
        Ok(Self::of(at, &state, attempts_per_s))
    }

    fn of(at: &BudgetRef, state: &BudgetState, attempts_per_s: f64) -> Self {
        let quota = |(quota, &used): (&paceline_core::quota::Quota, &u64)| {
            let share = used as f64 / quota.limit() as f64;
            let alert = share >= QUOTA_ALERT;
            QuotaView { quota: quota.to_string(), limit: quota.limit(), used, share, alert }
        };
        Self {
            name: at.name.clone(),
            rate: at.limits.rate.to_string(),
            burst: at.limits.burst,
            max_in_flight: at.limits.max_in_flight,
            ceiling_per_s: state.ceiling_per_s,
            ceiling_burst: state.ceiling_burst,
            limits_by: Some(state.limits_by.clone()).filter(|by| !by.is_empty()),
            pace_per_s: state.pace_per_s,
            pace_burst: state.pace_burst,
            tokens: state.tokens,
            attempts_per_s,
            utilisation: attempts_per_s / state.pace_per_s,
            accepted: state.heard.accepted,
            throttled: state.heard.throttled + state.late_throttled,
            hold_episodes: state.heard.episodes,
            answer_ms: state.heard.answer_ms,
            quotas: at.limits.quotas.iter().zip(&state.quotas_used).map(quota).collect(),
            hold: state.hold.as_ref().map(HoldView::of),
            classes: at.spenders.iter().map(|spender| spender.class.clone()).collect(),
        }
    }
}

/// Requests of the last minute over all classes that spend from a budget: this minute, and of the one before the part
/// that is not a minute ago.
async fn attempts_per_s(app: &App, at: &BudgetRef) -> Result<f64, Problem> {
    let into_minute = (app.store.now_ms() % 60_000) as f64 / 60_000.0;
    let mut attempts = 0.0;
    for known in at.spenders.iter().filter_map(|spender| app.find(spender.class.as_str())) {
        for (index, (_, counts)) in app.store.counts(&known.at, 2).await?.into_iter().enumerate() {
            let weight = if index == 0 { 1.0 - into_minute } else { 1.0 };
            let sent = counts.iter().filter(|(code, _)| !code.starts_with('|')).map(|(_, n)| *n as f64);
            attempts += weight * sent.sum::<f64>();
        }
    }
    Ok(attempts / 60.0)
}

/// Every budget once, by name, with a class that spends from it.
pub(crate) fn all(app: &App) -> BTreeMap<&Name, (&Known, &BudgetRef)> {
    app.known().flat_map(|known| known.at.budgets.iter().map(move |at| (&at.name, (known, at)))).collect()
}

/// Every budget.
#[derive(Debug, Serialize)]
pub(crate) struct Budgets {
    budgets: Vec<BudgetView>,
}

/// `GET /v1/budgets`
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    InQuery(fields): InQuery,
) -> Result<Json<Budgets>, Problem> {
    fields.finish()?;
    let mut budgets = Vec::new();
    for (known, at) in all(&app).into_values() {
        budgets.push(BudgetView::read(&app, known, at).await?);
    }
    Ok(Json(Budgets { budgets }))
}

/// `GET /v1/budgets/{name}`
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    InQuery(fields): InQuery,
) -> Result<Json<BudgetView>, Problem> {
    fields.finish()?;
    let (known, at) = app.budget(&name)?;
    Ok(Json(BudgetView::read(&app, known, at).await?))
}

/// A change of the pace, with its moment for people.
#[derive(Debug, Serialize)]
struct DecisionView {
    at: String,
    #[serde(flatten)]
    decision: PaceDecision,
}

/// The last ones, newest first.
#[derive(Debug, Serialize)]
pub(crate) struct Decisions {
    decisions: Vec<DecisionView>,
}

/// `GET /v1/budgets/{name}/decisions?limit=50`
pub(crate) async fn decisions(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    InQuery(mut fields): InQuery,
) -> Result<Json<Decisions>, Problem> {
    let limit = fields.whole("limit", 1..=1_000)?.unwrap_or(50);
    fields.finish()?;
    let (known, at) = app.budget(&name)?;
    let decisions = app.store.decisions(&known.at, at, limit as usize).await?;
    let view = |decision: PaceDecision| DecisionView { at: rfc3339(decision.at_ms), decision };
    Ok(Json(Decisions { decisions: decisions.into_iter().map(view).collect() }))
}

/// `PUT /v1/budgets/{name}` `{rate?, burst?, floor?, max_in_flight?}`: in force at once, for every worker, and until it is
/// taken back; what is not named stays as configured. No change grants a burst.
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    InBody(fields): InBody,
) -> Result<Json<BudgetView>, Problem> {
    Ok(Json(put_limits(&app, &caller, &name, fields).await?))
}

/// A person's limits over those of the configuration.
pub(crate) async fn put_limits(
    app: &App,
    caller: &Caller,
    name: &str,
    fields: Fields,
) -> Result<BudgetView, Problem> {
    let (known, at) = app.budget(name)?;
    let limits = limits_of(fields, &at.limits)?;
    app.declared(known, || app.store.limit(&known.at, at, &limits, Some(&caller.name))).await?;
    tracing::info!(by = caller.name, budget = name, rate = %limits.rate, burst = limits.burst, "limits set");
    BudgetView::read(app, known, at).await
}

fn limits_of(mut fields: Fields, configured: &Limits) -> Result<Limits, Problem> {
    let mut rate = |name: &'static str| -> Result<Option<Rate>, Problem> {
        let read = |text: String| text.parse::<Rate>().map_err(|fault| Problem::invalid(name, fault.problem));
        fields.text(name)?.map(read).transpose()
    };
    let (new_rate, floor) = (rate("rate")?, rate("floor")?);
    let burst = fields.whole("burst", 1..=100_000)?;
    let max_in_flight = fields.whole("max_in_flight", 0..=1_000_000)?;
    fields.finish()?;
    if new_rate.is_none() && floor.is_none() && burst.is_none() && max_in_flight.is_none() {
        return Err(Problem::invalid(
            "rate",
            "is missing: name at least one of rate, burst, floor, max_in_flight",
        ));
    }
    let rate = new_rate.unwrap_or(configured.rate);
    let floor = floor.unwrap_or(configured.floor);
    if floor.per_s() > rate.per_s() && new_rate.is_none() {
        return Err(Problem::invalid("floor", "must not be above the rate"));
    }
    Ok(Limits {
        rate,
        floor,
        burst: burst.map_or(configured.burst, |burst| burst as u32),
        max_in_flight: max_in_flight.map_or(configured.max_in_flight, |most| most as u32),
        ..configured.clone()
    })
}

/// `DELETE /v1/budgets/{name}`: the limits are the configuration's again.
pub(crate) async fn unset(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<BudgetView>, Problem> {
    Ok(Json(drop_limits(&app, &caller, &name).await?))
}

/// The limits are the configuration's again.
pub(crate) async fn drop_limits(app: &App, caller: &Caller, name: &str) -> Result<BudgetView, Problem> {
    let (known, at) = app.budget(name)?;
    app.declared(known, || app.store.limit(&known.at, at, &at.limits, None)).await?;
    tracing::info!(by = caller.name, budget = name, "limits given back to the configuration");
    BudgetView::read(app, known, at).await
}

/// `POST /v1/budgets/{name}/pause` `{for_s?}`: every class that spends from it is silent.
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    body: InBody,
) -> Result<Json<BudgetView>, Problem> {
    hold(&app, &caller, &name, pause_order(body)?).await.map(Json)
}

/// `POST /v1/budgets/{name}/resume`: lifts whatever hold is there, a suspect credential's too.
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    InBody(fields): InBody,
) -> Result<Json<BudgetView>, Problem> {
    fields.finish()?;
    hold(&app, &caller, &name, RESUME).await.map(Json)
}

pub(crate) async fn hold(
    app: &App,
    caller: &Caller,
    name: &str,
    order: Order,
) -> Result<BudgetView, Problem> {
    let (known, at) = app.budget(name)?;
    app.store.hold(&known.at, Held::Budget(&at.name), order.cause, order.delay_ms, &caller.name).await?;
    audit(caller, "budget", name, order);
    BudgetView::read(app, known, at).await
}
