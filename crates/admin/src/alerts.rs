//! `GET /v1/alerts`: what a person should look at, computed from the truth each time; nothing is remembered here.

use crate::AppState;
use crate::budgets::{self, BudgetView};
use crate::classes::{App, Known};
use crate::fields::InQuery;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use paceline_core::config::AlertsConfig;
use paceline_core::decide::HoldCause;
use paceline_store::{Depths, Hold, Store};
use serde::Serialize;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Throttles and unknown answers are looked at over so many minutes.
const MINUTES: u64 = 5;
/// Fewer attempts than this say nothing about a share.
const LEAST_ATTEMPTS: u64 = 20;
/// How often alerts are looked for.
const LOOK: Duration = Duration::from_secs(10);

/// Something a person should look at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alert {
    /// `throttle_rate`, `oldest_due`, `oldest_pending`, `quota`, `suspect`, `outage`, `unknown_code`, `unconfirmed`.
    pub kind: &'static str,
    /// The class or budget.
    pub on: String,
    /// What was measured, and from where on it is told.
    pub value: f64,
    /// From where on it is told.
    pub threshold: f64,
    /// It in words, with what to do.
    pub words: String,
}

/// What is told of an alert.
#[derive(Debug, Clone, Serialize)]
pub struct Notice {
    /// `begins`, `stands` (again after a while) or `resolved`.
    pub event: &'static str,
    /// What about.
    pub alert: Alert,
}

/// Tells of alerts as they begin, stand and resolve, until it is dropped. A notice that `tell` could not deliver is told
/// again with the next look.
pub async fn watch<F>(state: AppState, tell: impl Fn(Notice) -> F)
where
    F: Future<Output = bool>,
{
    let repeat = Duration::from_secs(state.config.alerts.repeat_s);
    let app = App::new(state);
    let mut told: BTreeMap<(&'static str, String), (Alert, Instant)> = BTreeMap::new();
    loop {
        tokio::time::sleep(LOOK).await;
        // While Redis is away nothing is known: nothing begins and nothing is resolved.
        let Ok(standing) = standing(&app).await else { continue };
        for (event, alert) in news(&standing, &told, repeat) {
            let key = (alert.kind, alert.on.clone());
            if !tell(Notice { event, alert: alert.clone() }).await {
                continue;
            }
            if event == "resolved" {
                told.remove(&key);
            } else {
                told.insert(key, (alert, Instant::now()));
            }
        }
    }
}

fn news(
    standing: &[Alert],
    told: &BTreeMap<(&'static str, String), (Alert, Instant)>,
    repeat: Duration,
) -> Vec<(&'static str, Alert)> {
    let key = |alert: &Alert| (alert.kind, alert.on.clone());
    let begun = standing.iter().filter_map(|alert| match told.get(&key(alert)) {
        None => Some(("begins", alert.clone())),
        Some((_, at)) if at.elapsed() >= repeat => Some(("stands", alert.clone())),
        Some(_) => None,
    });
    let stands = |told: &Alert| standing.iter().any(|alert| key(alert) == key(told));
    let over =
        told.values().filter(|(alert, _)| !stands(alert)).map(|(alert, _)| ("resolved", alert.clone()));
    begun.chain(over).collect()
}

/// All that stand.
#[derive(Debug, Serialize)]
pub(crate) struct Alerts {
    alerts: Vec<Alert>,
}

/// The route.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    InQuery(fields): InQuery,
) -> Result<Json<Alerts>, Problem> {
    fields.finish()?;
    Ok(Json(Alerts { alerts: standing(&app).await? }))
}

/// Every alert that stands now.
pub(crate) async fn standing(app: &App) -> Result<Vec<Alert>, Problem> {
    let (mut alerts, config) = (Vec::new(), &app.config.alerts);
    for known in app.known() {
        let depths = app.store.depths(&known.at).await?;
        let mut counts = Vec::new();
        for (_, minute) in app.store.counts(&known.at, MINUTES).await? {
            counts.extend(minute);
        }
        alerts.extend(of_class(known, config, &depths, &counts));
    }
    for (known, at) in budgets::all(app).into_values() {
        let view = BudgetView::read(app, known, at).await?;
        for quota in view.quotas.iter().filter(|quota| quota.share >= config.quota_share) {
            alerts.push(Alert {
                kind: "quota",
                on: at.name.to_string(),
                value: quota.share,
                threshold: config.quota_share,
                words: format!("{} of {} are used", quota.used, quota.quota),
            });
        }
        let state = app.store.pace(&known.at, at).await?;
        alerts.extend(state.hold.as_ref().and_then(|hold| of_hold(at.name.as_str(), hold)));
    }
    Ok(alerts)
}

fn of_class(known: &Known, config: &AlertsConfig, depths: &Depths, counts: &[(String, u64)]) -> Vec<Alert> {
    let on = known.name();
    let with = |outcome: &str| -> u64 {
        let named = |code: &str| code.rsplit('|').nth(1) == Some(outcome);
        counts.iter().filter(|(code, _)| named(code)).map(|(_, n)| n).sum()
    };
    let attempts: u64 = counts.iter().filter(|(code, _)| !code.starts_with('|')).map(|(_, n)| n).sum();
    let share = with("throttled") as f64 / attempts.max(LEAST_ATTEMPTS) as f64;
    let age = |ms: Option<u64>| ms.unwrap_or(0) as f64 / 1_000.0;
    let over = |kind, value: f64, threshold: f64, words: String| {
        (value >= threshold).then(|| Alert { kind, on: on.to_owned(), value, threshold, words })
    };
    let (due_s, pending_s) = (age(depths.oldest_due_ms), age(depths.oldest_pending_ms));
    let unknown = with("unknown");
    [
        over(
            "throttle_rate",
            share,
            config.throttle_share,
            format!(
                "{:.0} % of the last {MINUTES} minutes' requests were throttled; see the budget's decisions",
                share * 100.0
            ),
        ),
        over(
            "oldest_due",
            due_s,
            config.oldest_due_s as f64,
            format!("a job is due for {due_s:.0} s; `paceline explain {on}` says what binds"),
        ),
        over(
            "oldest_pending",
            pending_s,
            config.oldest_pending_s as f64,
            format!("a job has been tried again and again for {pending_s:.0} s"),
        ),
        over(
            "unknown_code",
            unknown as f64,
            1.0,
            format!("{unknown} answers are not in the vocabulary; `paceline queues` counts what they hold"),
        ),
        depths.holds.first().and_then(Option::as_ref).and_then(|hold| of_hold(on, hold)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A hold that a person has to look at.
fn of_hold(on: &str, hold: &Hold) -> Option<Alert> {
    let (kind, words) = match hold.cause {
        HoldCause::Suspect => {
            ("suspect", "refused again and again: mend the key or the destination, then resume")
        }
        HoldCause::Outage => ("outage", "the remote side does not answer; probes go on by themselves"),
        HoldCause::Quota => ("quota", "the remote side says that the allowance is used up"),
        _ => return None,
    };
    Some(Alert { kind, on: on.to_owned(), value: 1.0, threshold: 1.0, words: words.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_told_when_it_begins_again_after_a_while_and_when_it_is_over() {
        let alert = Alert {
            kind: "quota",
            on: "key".into(),
            value: 0.8,
            threshold: 0.7,
            words: "800 of 1000/h".into(),
        };
        let (mut told, standing) = (BTreeMap::new(), [alert.clone()]);
        let events = |told: &BTreeMap<_, _>, standing: &[Alert], repeat| {
            news(standing, told, repeat).into_iter().map(|(event, _)| event).collect::<Vec<_>>()
        };
        assert_eq!(events(&told, &standing, Duration::MAX), ["begins"]);
        told.insert((alert.kind, alert.on.clone()), (alert, Instant::now()));
        assert!(events(&told, &standing, Duration::MAX).is_empty());
        assert_eq!(events(&told, &standing, Duration::ZERO), ["stands"]);
        assert_eq!(events(&told, &[], Duration::MAX), ["resolved"]);
    }
}
