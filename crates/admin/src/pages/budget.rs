//! `/budgets/{name}`: one budget; its limits by form, its pace over time, every decision in words.

use super::budgets::pace;
use super::chart::{Pace, change};
use super::fault::{Answer, Fault, sentence};
use super::form::{InForm, InQuery, Pairs};
use super::layout::{Area, Page, Shell};
use super::parts::{as_of, button, empty, hold, number, pause_or_resume, quotas, section, told};
use super::words::{many, near, rate, span};
use crate::access::Caller;
use crate::budgets::{self as api, BudgetView};
use crate::classes::App;
use crate::fields::InBody;
use crate::problem::Problem;
use crate::queues::{RESUME, pause_order};
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use paceline_store::PaceDecision;
use std::cmp::Ordering;
use std::sync::Arc;

/// The chart looks back so far.
const CHART_MS: u64 = 3_600_000;
/// Decisions that are read; the store keeps a thousand.
pub(super) const DECISIONS: usize = 200;
/// Those of them that stand in the table.
const LISTED: usize = 50;

/// A form that was refused, as it was sent.
struct Refused {
    sent: Pairs,
    problem: Problem,
}

/// `GET /budgets/{name}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    shell: Shell,
    Path(name): Path<String>,
    InQuery(asked): InQuery,
) -> Answer {
    let main = main(&app, &shell, &name, told(asked.get("told")), None).await?;
    shell.page(&app, Page { title: &name, area: Area::Budgets, live: true, main }).await
}

async fn main(
    app: &App,
    shell: &Shell,
    name: &str,
    told: Markup,
    refused: Option<&Refused>,
) -> Result<Markup, Fault> {
    let (known, at) = app.budget(name)?;
    let view = BudgetView::read(app, known, at).await?;
    let decisions = app.store.decisions(&known.at, at, DECISIONS).await?;
    let now_ms = app.store.now_ms();
    Ok(html! {
        div.title { h1 { "Budget " (name) } (as_of(now_ms)) }
        (told)
        @if let Some(held) = &view.hold { p.strip { (hold(held, now_ms)) } }
        (pace(&view))
        (quotas(&view))
        (section("pace-over-time", "Pace over the last hour", chart(&view, &decisions, now_ms)))
        (section("limits", "Limits", limits(&view, shell.may_change(), refused)))
        (section("heard", "Counted since this budget exists", heard(&view)))
        (section("decisions", "Decisions", list(&decisions, now_ms)))
    })
}

/// The pace of an hour, or since the first decision, with its decisions as dots.
pub(super) fn chart(view: &BudgetView, decisions: &[PaceDecision], now_ms: u64) -> Markup {
    let hour_ago_ms = now_ms.saturating_sub(CHART_MS);
    // A young budget would be one step at the right edge.
    let first_ms =
        decisions.last().map_or(0, |made| made.at_ms.saturating_sub((now_ms - made.at_ms.min(now_ms)) / 20));
    let from_ms = if decisions.len() < DECISIONS { hour_ago_ms.max(first_ms) } else { hour_ago_ms };
    let made = decisions.iter().filter(|made| made.at_ms >= from_ms).count() as u64;
    let drawn = Pace {
        from_ms,
        to_ms: now_ms,
        pace_per_s: view.pace_per_s,
        ceiling_per_s: view.ceiling_per_s,
        decisions,
    };
    let words = format!(
        "{} in the last hour; the pace is {} under a ceiling of {}",
        many(made, "decision", "decisions"),
        rate(view.pace_per_s),
        rate(view.ceiling_per_s)
    );
    html! {
        (drawn.draw(&words))
        p.quiet.legend {
            span.key.line { "pace" } span.key.ceiling { "ceiling" }
            span.key.good { "raised" } span.key.wait { "cut" }
        }
    }
}

/// Every decision in words, newest first.
pub(super) fn list(decisions: &[PaceDecision], now_ms: u64) -> Markup {
    html! {
        @if decisions.is_empty() {
            (empty("No decision yet.", html! {
                "The pace changes when the provider refuses, and when what it accepted shows that more is allowed. "
                "Each change is kept here with its reason."
            }))
        } @else {
            div.scroll {
                table.cards {
                    thead { tr { th scope="col" { "When" } th scope="col" { "Pace" } th scope="col" { "Why" } } }
                    tbody {
                        @for made in decisions.iter().take(LISTED) {
                            @let (tone, arrow) = direction(made);
                            tr {
                                td.nowrap data-name="When" { (near(made.at_ms, now_ms)) }
                                td.nowrap data-name="Pace" { span class=(tone) aria-hidden="true" { (arrow) } " " (change(made)) }
                                td data-name="Why" { (made.cause) }
                            }
                        }
                    }
                }
            }
            @if decisions.len() > LISTED { p.quiet { "The last " (LISTED) " of them." } }
        }
    }
}

/// A limit may be learnt and the pace stay what it is.
fn direction(made: &PaceDecision) -> (&'static str, &'static str) {
    match made.to_per_s.total_cmp(&made.from_per_s) {
        Ordering::Less => ("wait", "▼"),
        Ordering::Equal => ("quiet", "＝"),
        Ordering::Greater => ("good", "▲"),
    }
}

fn heard(view: &BudgetView) -> Markup {
    html! {
        dl.numbers {
            (number("accepted", view.accepted, "good"))
            (number("throttled", view.throttled, "wait"))
            (number("waits named by the provider", view.hold_episodes, "wait"))
        }
        @if view.answer_ms > 0 { p.quiet { "The provider takes about " (span(view.answer_ms)) " to answer." } }
    }
}

const FIELDS: [(&str, &str, &str); 4] = [
    ("rate", "Ceiling", "such as 100/s, 60/min or 5000/h"),
    ("burst", "Burst", "tokens that may leave at once"),
    ("floor", "Floor", "the pace never falls below"),
    ("max_in_flight", "In flight at once", "0: no limit"),
];

fn limits(view: &BudgetView, may_change: bool, refused: Option<&Refused>) -> Markup {
    let path = format!("/budgets/{}", view.name);
    html! {
        p {
            "Configured: " strong { (view.rate) } ", burst " (view.burst)
            @if view.max_in_flight > 0 { ", at most " (view.max_in_flight) " in flight" }
            ". In force: " strong { (rate(view.ceiling_per_s)) } ", burst " (view.ceiling_burst)
            @if let Some(by) = &view.limits_by { ", set by " (by) }
            "."
        }
        @if may_change {
            form.limits method="post" action={ (path) "/limits" } data-keep {
                @if let Some(refused) = refused {
                    p.fault role="alert" { (sentence(refused.problem.detail())) " Nothing was changed." }
                }
                @for (name, label, hint) in FIELDS { (field(name, label, hint, refused)) }
                button.button.primary type="submit" { "Set limits" }
            }
            p.quiet { "In force at once for every worker, until they are given back. What is left empty is as configured." }
            @if view.limits_by.is_some() {
                (button(&format!("{path}/limits/drop"), "Give the limits back to the settings", ""))
            }
            (pause_or_resume(&path, "everything that spends from it", view.hold.as_ref()))
        } @else {
            p.quiet { "An operator can change the limits here." }
        }
    }
}

fn field(name: &str, label: &str, hint: &str, refused: Option<&Refused>) -> Markup {
    let sent = refused.and_then(|refused| refused.sent.get(name));
    let is_wrong = refused.is_some_and(|refused| refused.problem.named() == Some(name));
    html! {
        div.field {
            label for=(name) { (label) }
            input id=(name) name=(name) value=[sent] autocomplete="off" aria-describedby={ (name) "-hint" }
                aria-invalid=[is_wrong.then_some("true")];
            span.quiet id={ (name) "-hint" } { (hint) }
        }
    }
}

/// `POST /budgets/{name}/limits`
pub(super) async fn set(
    State(app): State<Arc<App>>,
    shell: Shell,
    Path(name): Path<String>,
    InForm(sent): InForm,
) -> Answer {
    let fields = sent.fields(&FIELDS.map(|(name, ..)| name))?;
    match api::put_limits(&app, &shell.caller, &name, fields).await {
        Ok(_) => Ok(to(&name, "limits")),
        Err(problem) if problem.status().is_client_error() => {
            let status = problem.status();
            let refused = Refused { sent, problem };
            let main = main(&app, &shell, &name, html! {}, Some(&refused)).await?;
            let page = Page { title: &name, area: Area::Budgets, live: false, main };
            shell.refusal(&app, status, page).await
        }
        Err(problem) => Err(problem.into()),
    }
}

/// `POST /budgets/{name}/limits/drop`
pub(super) async fn drop(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    api::drop_limits(&app, &caller, &name).await?;
    Ok(to(&name, "dropped"))
}

/// `POST /budgets/{name}/pause`
pub(super) async fn pause(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    InForm(sent): InForm,
) -> Answer {
    let order = pause_order(InBody(sent.fields(&["for_s"])?))?;
    api::hold(&app, &caller, &name, order).await?;
    Ok(to(&name, "paused"))
}

/// `POST /budgets/{name}/resume`
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    api::hold(&app, &caller, &name, RESUME).await?;
    Ok(to(&name, "resumed"))
}

fn to(name: &str, told: &str) -> Response {
    Redirect::to(&format!("/budgets/{name}?told={told}")).into_response()
}
