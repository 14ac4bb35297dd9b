//! `GET /metrics`: this process's metrics, and gauges read from Redis at the scrape: cardinalities of the
//! truth, which no process keeps and none can get wrong. Every label has a closed set of values.

use crate::budgets;
use crate::classes::{App, Known};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::PrometheusHandle;
use paceline_core::State as JobState;
use paceline_core::decide::HoldCause;
use paceline_store::{BudgetRef, BudgetState, Depths, Hold, Store, StoreError};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The text format that every scraper reads.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The route. While Redis is away the process's own metrics are still there, and `paceline_redis_up` is 0.
pub(crate) async fn scrape(State(app): State<Arc<App>>) -> Response {
    let mut page = app.metrics.as_ref().map(|handle| handle.render()).unwrap_or_default();
    let depths = read(&app).await;
    if let Err(error) = &depths {
        tracing::warn!(%error, "a scrape could not read the depths");
    }
    let up = u64::from(depths.is_ok());
    family(&mut page, "paceline_redis_up", "Whether the depths could be read.", [(String::new(), up as f64)]);
    if let Ok((depths, budgets)) = depths {
        gauges(&mut page, &depths);
        paces(&mut page, &budgets);
    }
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], page).into_response()
}

/// This process's own metrics, without those that are read from Redis.
pub(crate) fn of_process(handle: Option<&PrometheusHandle>) -> Response {
    let page = handle.map(PrometheusHandle::render).unwrap_or_default();
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], page).into_response()
}

type Read<'a> = Vec<(&'a Known, Depths)>;
type Budgets<'a> = Vec<(&'a BudgetRef, BudgetState)>;

async fn read(app: &App) -> Result<(Read<'_>, Budgets<'_>), StoreError> {
    let (mut depths, mut paces) = (Vec::new(), Vec::new());
    for known in app.known() {
        depths.push((known, app.store.depths(&known.at).await?));
    }
    for (known, at) in budgets::all(app).into_values() {
        paces.push((at, app.declared(known, || app.store.pace(&known.at, at)).await?));
    }
    Ok((depths, paces))
}

/// A budget that several classes share is told once.
fn paces(page: &mut String, budgets: &Budgets<'_>) {
    let of = |read: fn(&BudgetState) -> f64| {
        budgets.iter().map(move |(at, state)| (format!("{{budget=\"{}\"}}", at.name), read(state)))
    };
    family(page, "paceline_pace_per_second", "The pace in force.", of(|state| state.pace_per_s));
    family(page, "paceline_ceiling_per_second", "The ceiling of the pace.", of(|state| state.ceiling_per_s));
    family(
        page,
        "paceline_hold_episodes",
        "Throttles with a named wait that began a hold.",
        of(|state| state.heard.episodes as f64),
    );
    family(
        page,
        "paceline_budget_accepted",
        "Cost of what was accepted.",
        of(|state| state.heard.accepted as f64),
    );
    family(
        page,
        "paceline_budget_throttled",
        "Throttled.",
        of(|state| (state.heard.throttled + state.late_throttled) as f64),
    );
    let quotas = budgets.iter().flat_map(|(at, state)| {
        at.limits.quotas.iter().zip(&state.quotas_used).map(|(quota, &used)| {
            let labels = format!("{{budget=\"{}\",quota=\"{quota}\"}}", at.name);
            (labels, used as f64 / quota.limit() as f64)
        })
    });
    family(page, "paceline_quota_used_ratio", "Used of a quota.", quotas);
}

fn gauges(page: &mut String, read: &Read<'_>) {
    let jobs = read.iter().flat_map(|(known, depths)| {
        JobState::ALL.map(|state| {
            let labels = format!("{{class=\"{}\",state=\"{state}\"}}", known.name());
            (labels, depths.of(state) as f64)
        })
    });
    family(page, "paceline_jobs", "Jobs of a class in a state.", jobs);
    let due = ages(read, |depths| depths.oldest_due_ms);
    family(page, "paceline_oldest_due_age_seconds", "The age of the oldest job that is due.", due);
    let pending = ages(read, |depths| depths.oldest_pending_ms);
    family(page, "paceline_oldest_pending_age_seconds", "The age of the oldest pending job.", pending);
    family(page, "paceline_hold", "Whether a class or budget is held, by cause.", holds(read));
}

/// Nothing due is age 0: a series that comes and goes makes alerts blind.
fn ages(read: &Read<'_>, age_ms: fn(&Depths) -> Option<u64>) -> Vec<(String, f64)> {
    read.iter()
        .map(|(known, depths)| {
            let seconds = age_ms(depths).unwrap_or(0) as f64 / 1_000.0;
            (format!("{{class=\"{}\"}}", known.name()), seconds)
        })
        .collect()
}

/// A budget that several classes share is told once.
fn holds(read: &Read<'_>) -> Vec<(String, f64)> {
    let mut holds: BTreeMap<String, Option<&Hold>> = BTreeMap::new();
    for (known, depths) in read {
        let mut standing = depths.holds.iter().map(Option::as_ref);
        holds.insert(format!("class=\"{}\"", known.name()), standing.next().flatten());
        for (budget, hold) in known.at.budgets.iter().zip(standing) {
            holds.insert(format!("budget=\"{}\"", budget.name), hold);
        }
    }
    let of_cause = |(on, hold): (String, Option<&Hold>)| {
        let cause = hold.map(|hold| hold.cause);
        HoldCause::ALL.map(|each| (format!("{{{on},cause=\"{each}\"}}"), f64::from(cause == Some(each))))
    };
    holds.into_iter().flat_map(of_cause).collect()
}

fn family(page: &mut String, name: &str, help: &str, samples: impl IntoIterator<Item = (String, f64)>) {
    page.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
    for (labels, value) in samples {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{name}{labels} {value}");
    }
}
