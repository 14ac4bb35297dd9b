//! `/budgets`: every budget, its pace against its ceiling and what it used.

use super::chart::bullet;
use super::fault::Answer;
use super::layout::{Area, Page, Shell};
use super::parts::{as_of, hold, quotas};
use super::words::{rate, short};
use crate::budgets::BudgetView;
use crate::classes::App;
use crate::problem::Problem;
use axum::extract::State;
use futures_util::future::try_join_all;
use maud::{Markup, html};
use std::sync::Arc;

/// The route.
pub(super) async fn show(State(app): State<Arc<App>>, shell: Shell) -> Answer {
    let views = read(&app).await?;
    let now_ms = app.store.now_ms();
    let main = html! {
        div.title { h1 { "Budgets" } (as_of(now_ms)) }
        p.intro {
            "A budget is what one key or account allows, shared by every worker. The ceiling is yours; the pace finds the "
            "provider's limit under it by itself."
        }
        (cards(&views, now_ms))
    };
    shell.page(&app, Page { title: "Budgets", area: Area::Budgets, live: true, main }).await
}

/// Every budget as it stands.
pub(super) async fn read(app: &App) -> Result<Vec<BudgetView>, Problem> {
    let all = crate::budgets::all(app).into_values();
    try_join_all(all.map(|(known, at)| BudgetView::read(app, known, at))).await
}

pub(super) fn cards(views: &[BudgetView], now_ms: u64) -> Markup {
    html! {
        div.grid {
            @for view in views {
                article.card {
                    h3 { a href={ "/budgets/" (view.name) } { (view.name) } }
                    @if let Some(held) = &view.hold { p { (hold(held, now_ms)) } }
                    (pace(view))
                    (quotas(view))
                    p.quiet {
                        "spent by "
                        @for (index, class) in view.classes.iter().enumerate() {
                            @if index > 0 { ", " }
                            a href={ "/classes/" (class) } { (class) }
                        }
                    }
                }
            }
        }
    }
}

/// Pace of ceiling, and what is really sent.
pub(super) fn pace(view: &BudgetView) -> Markup {
    html! {
        p.line {
            span { strong { (rate(view.pace_per_s)) } " pace of " (rate(view.ceiling_per_s)) }
            span { strong { (short(view.attempts_per_s)) } "/s sent" }
        }
        (bullet(view.pace_per_s, view.ceiling_per_s, view.attempts_per_s))
        @if let Some(by) = &view.limits_by { p.quiet { "limits by hand, by " (by) } }
    }
}
