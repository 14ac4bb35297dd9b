//! `/alerts`: what a person should look at, and where to look.

use super::fault::Answer;
use super::layout::{Area, Page, Shell};
use super::parts::{as_of, empty, prose};
use super::words::{many, percent, plain, span};
use crate::alerts::Alert;
use crate::classes::App;
use axum::extract::State;
use maud::{Markup, html};
use paceline_core::config::AlertsConfig;
use std::sync::Arc;

/// The route.
pub(super) async fn show(State(app): State<Arc<App>>, shell: Shell) -> Answer {
    let standing = crate::alerts::standing(&app).await?;
    let main = html! {
        div.title { h1 { "Alerts" } (as_of(app.store.now_ms())) }
        @if standing.is_empty() {
            (empty("Nothing needs you.", thresholds(&app.config.alerts)))
        } @else {
            (list(&standing, &app))
            p.quiet { (thresholds(&app.config.alerts)) }
        }
    };
    let page = Page { title: "Alerts", area: Area::Alerts, live: true, main };
    shell.page_with(&app, page, standing.len()).await
}

/// At the head of the overview: all is well, or what is not.
pub(super) fn strip(standing: &[Alert]) -> Markup {
    html! {
        @if standing.is_empty() {
            p.strip.calm { "Nothing needs you." }
        } @else {
            div.strip {
                p data-say { strong { (many(standing.len() as u64, "alert", "alerts")) } }
                ul {
                    @for alert in standing.iter().take(4) {
                        li { span.mark.bad { (plain(alert.kind)) } " " strong { (alert.on) } " " (prose(&alert.words)) }
                    }
                }
                p { a href="/alerts" { "What to do" } }
            }
        }
    }
}

fn list(standing: &[Alert], app: &App) -> Markup {
    html! {
        ul.alerts {
            @for alert in standing {
                li.card {
                    p { span.mark.bad { (plain(alert.kind)) } " " strong { (alert.on) } }
                    p.lead { (prose(&alert.words)) }
                    @if let Some(measured) = measured(alert) { p.quiet { (measured) } }
                    p { a.button href=(place(alert, app)) { "Look at " (alert.on) } }
                }
            }
        }
    }
}

/// What was measured against its threshold; a hold is there or not.
fn measured(alert: &Alert) -> Option<String> {
    let seconds = |value: f64| span((value * 1_000.0) as u64);
    match alert.kind {
        "throttle_rate" | "quota" if alert.threshold < 1.0 => {
            Some(format!("{} now; told from {} on.", percent(alert.value), percent(alert.threshold)))
        }
        "oldest_due" | "oldest_pending" => {
            Some(format!("{} now; told from {} on.", seconds(alert.value), seconds(alert.threshold)))
        }
        _ => None,
    }
}

/// An alert is about a class or about a budget; a class may be named as its budget is.
fn place(alert: &Alert, app: &App) -> String {
    let is_of_class = ["throttle_rate", "oldest_due", "oldest_pending", "unknown_code"].contains(&alert.kind);
    let is_budget = app.budget(&alert.on).is_ok() && !is_of_class;
    if is_budget { format!("/budgets/{}", alert.on) } else { format!("/classes/{}", alert.on) }
}

fn thresholds(config: &AlertsConfig) -> Markup {
    html! {
        "An alert stands here when " (percent(config.throttle_share)) " of five minutes' attempts are throttled, a due job is "
        (span(config.oldest_due_s * 1_000)) " old, a pending one " (span(config.oldest_pending_s * 1_000)) ", a quota is used by "
        (percent(config.quota_share)) ", an answer is not in the vocabulary, or a key or provider is suspect or silent. "
        "The thresholds are in the settings under " code { "[alerts]" } "; a webhook there tells people elsewhere."
    }
}
