//! `/`: every class and budget at a glance.

use super::fault::Answer;
use super::layout::{Area, Page, Shell};
use super::parts::{as_of, hold, section};
use super::traffic::Traffic;
use super::words::{count, many, minute_of, percent, span};
use super::{alerts, budgets, chart};
use crate::classes::{App, Known};
use crate::queues::HoldView;
use axum::extract::State;
use futures_util::future::try_join_all;
use maud::{Markup, html};
use paceline_core::State as JobState;
use paceline_store::{Depths, Store, StoreError};
use std::sync::Arc;

/// A class as the overview shows it.
struct Line<'a> {
    known: &'a Known,
    depths: Depths,
    traffic: Traffic,
}

impl<'a> Line<'a> {
    async fn read(app: &App, known: &'a Known) -> Result<Self, StoreError> {
        let depths = app.store.depths(&known.at).await?;
        Ok(Self { known, depths, traffic: Traffic::read(app, known).await? })
    }
}

/// The route.
pub(super) async fn show(State(app): State<Arc<App>>, shell: Shell) -> Answer {
    // Side by side: an hour of one class is sixty answers, and all classes wait for theirs together.
    let lines = try_join_all(app.known().map(|known| Line::read(&app, known))).await?;
    let views = budgets::read(&app).await?;
    let standing = crate::alerts::standing(&app).await?;
    let now_ms = app.store.now_ms();
    let main = html! {
        div.title { h1 { "Overview" } (as_of(now_ms)) }
        (alerts::strip(&standing))
        (section("jobs", "Jobs by class", jobs(&lines, now_ms)))
        (section("pace", "Pace against ceiling", budgets::cards(&views, now_ms)))
        (section("throttles", "Throttles against attempts, last hour", html! { (key()) (throttles(&lines)) }))
    };
    let page = Page { title: "Overview", area: Area::Overview, live: true, main };
    shell.page_with(&app, page, standing.len()).await
}

/// The states a line shows behind what waits, in groups.
const GROUPS: [(&str, &[JobState]); 3] = [
    ("Now", &[JobState::InFlight]),
    ("Done", &[JobState::Submitted, JobState::Failed, JobState::Expired, JobState::Cancelled]),
    ("Waits for a person", &[JobState::Deferred, JobState::Unconfirmed]),
];

fn jobs(lines: &[Line<'_>], now_ms: u64) -> Markup {
    html! {
        div.scroll {
            table.cards {
                thead {
                    tr {
                        td.blank {}
                        th colspan="3" scope="colgroup" { span { "Waiting" } }
                        @for (name, states) in GROUPS { th colspan=(states.len()) scope="colgroup" { span { (name) } } }
                        td.blank {}
                    }
                    tr {
                        th scope="col" { "Class" }
                        @for name in ["queued", "of these scheduled", "pending"] { th.n scope="col" { (name) } }
                        @for state in GROUPS.iter().flat_map(|(_, states)| *states) {
                            th.n scope="col" { (super::words::plain(state.as_str())) }
                        }
                        th.n scope="col" { "oldest due" }
                    }
                }
                tbody { @for line in lines { (row(line, now_ms)) } }
            }
        }
    }
}

fn row(line: &Line<'_>, now_ms: u64) -> Markup {
    let (name, depths) = (line.known.name(), &line.depths);
    html! {
        tr {
            th scope="row" {
                a href={ "/classes/" (name) } { (name) }
                @for hold in held(line) { " " span.block { (hold_on(hold, now_ms)) } }
            }
            (cell("queued", depths.of(JobState::Queued), ""))
            (cell("of these scheduled", depths.scheduled, ""))
            (cell("pending", depths.of(JobState::Pending), "wait"))
            @for &state in GROUPS.iter().flat_map(|(_, states)| *states) {
                (cell(state.as_str(), depths.of(state), super::parts::tone(state)))
            }
            td.n data-name="oldest due" { (depths.oldest_due_ms.map_or("–".to_owned(), span)) }
        }
    }
}

fn cell(name: &str, value: u64, tone: &str) -> Markup {
    let tone = if value == 0 { "zero" } else { tone };
    html! { td class={ "n " (tone) } data-name=(super::words::plain(name)) { (count(value)) } }
}

/// The class's hold, and those of its budgets with their names.
fn held<'a>(line: &'a Line<'_>) -> impl Iterator<Item = (Option<&'a str>, HoldView)> {
    let names = std::iter::once(None).chain(line.known.at.budgets.iter().map(|at| Some(at.name.as_str())));
    let stands = |(name, hold): (Option<&'a str>, &'a Option<paceline_store::Hold>)| {
        hold.as_ref().map(|hold| (name, HoldView::of(hold)))
    };
    names.zip(&line.depths.holds).filter_map(stands)
}

fn hold_on((budget, held): (Option<&str>, HoldView), now_ms: u64) -> Markup {
    html! { (hold(&held, now_ms)) @if let Some(budget) = budget { span.quiet { " on " (budget) } } }
}

fn throttles(lines: &[Line<'_>]) -> Markup {
    html! {
        div.grid {
            @for line in lines {
                article.card {
                    h3 { a href={ "/classes/" (line.known.name()) } { (line.known.name()) } }
                    (traffic(&line.traffic))
                }
            }
        }
    }
}

/// What the colours of a chart of attempts mean.
pub(super) fn key() -> Markup {
    html! {
        p.quiet.legend {
            span.key.good { "accepted" } span.key.wait { "throttled: not right now" } span.key.bad { "anything else" }
        }
    }
}

/// The same, minute by minute.
pub(super) fn minutes(traffic: &Traffic) -> Markup {
    let sent = || traffic.minutes.iter().rev().filter(|minute| minute.attempts() > 0);
    html! {
        @if sent().next().is_some() {
            details {
                summary { "Minute by minute" }
                table.narrow {
                    thead {
                        tr {
                            th scope="col" { "Minute" }
                            @for name in ["accepted", "throttled", "anything else"] { th.n scope="col" { (name) } }
                        }
                    }
                    tbody {
                        @for minute in sent() {
                            tr {
                                th scope="row" { (minute_of(minute.began_ms)) }
                                @for n in [minute.accepted, minute.throttled, minute.other] { td.n { (count(n)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The chart of a class's hour with its sum in words.
pub(super) fn traffic(traffic: &Traffic) -> Markup {
    let attempts = traffic.attempts();
    let told = format!(
        "{} in the last hour, {} of them throttled, {}",
        many(attempts, "attempt", "attempts"),
        count(traffic.throttled()),
        percent(traffic.throttled_share())
    );
    html! {
        @if attempts == 0 {
            p.quiet { "Nothing was sent in the last hour." }
        } @else {
            p.line {
                span { strong { (count(attempts)) } (if attempts == 1 { " attempt" } else { " attempts" }) }
                span {
                    strong class=(if traffic.throttled() > 0 { "wait" } else { "" }) { (count(traffic.throttled())) }
                    " throttled · " (percent(traffic.throttled_share()))
                }
            }
            (chart::traffic(&traffic.minutes, &told))
        }
    }
}
