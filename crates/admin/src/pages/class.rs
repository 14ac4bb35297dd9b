//! `/classes/{class}`: why not now and when, how deep, how fast, what the provider said.

use super::fault::{Answer, Fault};
use super::form::{InForm, InQuery, link};
use super::layout::{Area, Page, Shell};
use super::overview::{key, minutes, traffic};
use super::parts::{as_of, empty, explanation, hold, number, pause_or_resume, quotas, section, told, tone};
use super::traffic::Traffic;
use super::words::{count, plain, span};
use super::{budget, budgets};
use crate::access::Caller;
use crate::budgets::BudgetView;
use crate::classes::{App, Known};
use crate::codes::CodeRow;
use crate::explain;
use crate::fields::InBody;
use crate::queues::{HoldView, RESUME, hold_class, pause_order};
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use paceline_core::State as JobState;
use paceline_store::{Depths, PaceDecision, Store};
use std::sync::Arc;

/// Decisions under a chart; the budget's page has more.
const LISTED: usize = 8;

/// `GET /classes/{class}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    shell: Shell,
    Path(class): Path<String>,
    InQuery(asked): InQuery,
) -> Answer {
    let known = app.class(&class)?;
    let explained = explain::read(&app, known, None).await?;
    let depths = app.store.depths(&known.at).await?;
    let held = depths.holds.first().and_then(Option::as_ref).map(HoldView::of);
    let sent = Traffic::read(&app, known).await?;
    let spent = Spent::read(&app, known).await?;
    let now_ms = app.store.now_ms();
    let main = html! {
        div.title { h1 { "Class " (class) } (as_of(now_ms)) }
        (told(asked.get("told")))
        section.why aria-labelledby="why" {
            h2 #why { "Why not now?" }
            @if let Some(held) = &held { p { (hold(held, now_ms)) } }
            @for (view, held) in spent.iter().filter_map(|spent| Some((&spent.view, spent.view.hold.as_ref()?))) {
                p { (hold(held, now_ms)) " on " a href={ "/budgets/" (view.name) } { (view.name) } }
            }
            (explanation(&explained, now_ms))
            @if shell.may_change() { (pause_or_resume(&format!("/classes/{class}"), "this class", held.as_ref())) }
        }
        (section("jobs", "Jobs", jobs(&class, &depths)))
        (find(&class))
        @for spent in &spent { (spent.section(now_ms)) }
        (section("sent", "Throttles against attempts, last hour", html! { (traffic(&sent)) (key()) (minutes(&sent)) }))
        (section("codes", "What the provider said, last hour", codes(&sent.codes)))
    };
    shell.page(&app, Page { title: &class, area: Area::Nowhere, live: true, main }).await
}

/// A budget that the class spends from.
struct Spent {
    view: BudgetView,
    decisions: Vec<PaceDecision>,
}

impl Spent {
    async fn read(app: &App, known: &Known) -> Result<Vec<Self>, Fault> {
        let mut all = Vec::new();
        for at in &known.at.budgets {
            let view = BudgetView::read(app, known, at).await?;
            all.push(Self { view, decisions: app.store.decisions(&known.at, at, budget::DECISIONS).await? });
        }
        Ok(all)
    }

    fn section(&self, now_ms: u64) -> Markup {
        let path = format!("/budgets/{}", self.view.name);
        let listed = &self.decisions[..self.decisions.len().min(LISTED)];
        let body = html! {
            @if let Some(held) = &self.view.hold { p { (hold(held, now_ms)) } }
            (budgets::pace(&self.view))
            (quotas(&self.view))
            (budget::chart(&self.view, &self.decisions, now_ms))
            (budget::list(listed, now_ms))
            p { a href=(path) { "Limits and all decisions of " (self.view.name) } }
        };
        section(&format!("pace-{}", self.view.name), &format!("Pace of {}", self.view.name), body)
    }
}

fn jobs(class: &str, depths: &Depths) -> Markup {
    let dead = [JobState::Failed, JobState::Deferred, JobState::Unconfirmed];
    html! {
        dl.numbers {
            (number("queued", depths.of(JobState::Queued), ""))
            (number("of these scheduled", depths.scheduled, ""))
            @for &state in JobState::ALL.iter().filter(|state| **state != JobState::Queued) {
                (number(&plain(state.as_str()), depths.of(state), tone(state)))
            }
        }
        p.quiet {
            @match depths.oldest_due_ms {
                Some(age_ms) => { "The oldest due job is " strong { (span(age_ms)) } " late. " }
                None => { "Nothing is due. " }
            }
            @if let Some(age_ms) = depths.oldest_pending_ms {
                "The oldest pending one was first refused " strong { (span(age_ms)) } " ago. "
            }
            @for state in dead.into_iter().filter(|state| depths.of(*state) > 0) {
                a href=(link("/dead-letters", [("class", class), ("state", state.as_str())])) {
                    (count(depths.of(state))) " " (state)
                }
                " "
            }
        }
    }
}

/// One job by its key.
fn find(class: &str) -> Markup {
    html! {
        form.find method="get" action="/job" role="search" data-keep {
            input type="hidden" name="class" value=(class);
            label for="key" { "One job, by its key" }
            input #key name="key" required autocomplete="off" spellcheck="false";
            button.button type="submit" { "Show" }
        }
    }
}

fn codes(rows: &[CodeRow]) -> Markup {
    html! {
        @if rows.is_empty() {
            (empty("Nothing was said.", html! {
                "Each answer of the provider is counted here with what it meant and where the job went: "
                "a 429 leads to pending, never to failed."
            }))
        } @else {
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "Provider's code" } th scope="col" { "means" } th scope="col" { "job went to" }
                            th.n scope="col" { "how often" }
                        }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                td {
                                    @if row.code.is_empty() { span.quiet { "none: our own move" } } @else { code { (row.code) } }
                                }
                                td { (plain(&row.outcome)) }
                                td { @match JobState::parse(&row.state) {
                                    Some(state) => (super::parts::state(state)),
                                    None => (plain(&row.state)),
                                } }
                                td.n { (count(row.n)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `POST /classes/{class}/pause`
pub(super) async fn pause(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(class): Path<String>,
    InForm(sent): InForm,
) -> Answer {
    let order = pause_order(InBody(sent.fields(&["for_s"])?))?;
    hold_class(&app, &caller, &class, order).await?;
    Ok(to(&class, "paused"))
}

/// `POST /classes/{class}/resume`
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(class): Path<String>,
) -> Answer {
    hold_class(&app, &caller, &class, RESUME).await?;
    Ok(to(&class, "resumed"))
}

fn to(class: &str, told: &str) -> Response {
    Redirect::to(&format!("/classes/{class}?told={told}")).into_response()
}
