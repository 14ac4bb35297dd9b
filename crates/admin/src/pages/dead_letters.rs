//! `/dead-letters`: jobs that wait for a person, by class, state, reason and code.

use super::fault::{Answer, Fault};
use super::form::{InQuery, Pairs, job_link, link};
use super::layout::{Area, Page, Shell};
use super::parts::{as_of, empty, section, state};
use super::words::{count, many, plain, span};
use crate::classes::{App, Known};
use crate::dead_letters::{self as api, DeadLetter};
use axum::extract::State;
use maud::{Markup, html};
use paceline_core::State as JobState;
use paceline_store::{Depths, Store};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What may be dead.
pub(super) const DEAD: [JobState; 3] = [JobState::Deferred, JobState::Unconfirmed, JobState::Failed];
/// Reasons that are offered.
const REASONS: usize = 8;
/// What chooses among them.
pub(super) const FILTERS: [&str; 4] = ["class", "state", "reason", "code"];

/// The route.
pub(super) async fn show(State(app): State<Arc<App>>, shell: Shell, InQuery(asked): InQuery) -> Answer {
    let fields = asked.fields(&["class", "state", "reason", "code", "cursor"])?;
    let page = api::read(&app, fields).await?;
    let counts = counts(&app).await?;
    let now_ms = app.store.now_ms();
    let main = html! {
        div.title { h1 { "Dead letters" } (as_of(now_ms)) }
        p.intro {
            strong { "Deferred" } ": attempts spent, or throttled for a day. " strong { "Unconfirmed" }
            ": it may have been accepted, nobody can tell. " strong { "Failed" }
            ": refused for good. None of them moves by itself."
        }
        (summary(&counts))
        (filter(&app, &asked))
        (section("list", &title(&page), list(&page, &asked, &shell, now_ms)))
    };
    shell.page(&app, Page { title: "Dead letters", area: Area::DeadLetters, live: true, main }).await
}

async fn counts(app: &App) -> Result<Vec<(&Known, Depths)>, Fault> {
    let mut counts = Vec::new();
    for known in app.known() {
        counts.push((known, app.store.depths(&known.at).await?));
    }
    Ok(counts)
}

/// Per class and state, each number leading to its list.
fn summary(counts: &[(&Known, Depths)]) -> Markup {
    html! {
        div.scroll {
            table.narrow {
                thead {
                    tr {
                        th scope="col" { "Class" }
                        @for state in DEAD { th.n scope="col" { (state) } }
                    }
                }
                tbody {
                    @for (known, depths) in counts {
                        tr {
                            th scope="row" { a href=(link("/dead-letters", [("class", known.name())])) { (known.name()) } }
                            @for state in DEAD {
                                @let query = [("class", known.name()), ("state", state.as_str())];
                                td.n.zero[depths.of(state) == 0] {
                                    @match depths.of(state) {
                                        0 => "0",
                                        jobs => a href=(link("/dead-letters", query)) { (count(jobs)) },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn filter(app: &App, asked: &Pairs) -> Markup {
    let states: Vec<&str> = asked.all("state").collect();
    let is_asked = |state: JobState| {
        if states.is_empty() { state.is_dead_letter() } else { states.contains(&state.as_str()) }
    };
    html! {
        form.filter method="get" action="/dead-letters" role="search" data-keep {
            div.field {
                label for="class" { "Class" }
                select #class name="class" {
                    option value="" { "all" }
                    @for known in app.known() {
                        option selected[asked.get("class") == Some(known.name())] { (known.name()) }
                    }
                }
            }
            fieldset {
                legend { "State" }
                @for state in DEAD {
                    label { input type="checkbox" name="state" value=(state) checked[is_asked(state)]; " " (state) }
                }
            }
            div.field { label for="reason" { "Reason" } input #reason name="reason" value=[asked.get("reason")]; }
            div.field { label for="code" { "Provider's code" } input #code name="code" value=[asked.get("code")]; }
            button.button type="submit" { "Filter" }
        }
    }
}

fn title(page: &api::Page) -> String {
    let shown = many(page.items.len() as u64, "job", "jobs");
    match page.next_cursor {
        Some(_) => format!("{shown}, and there are more"),
        None => shown,
    }
}

/// One class can be replayed at a time: the one that is asked for, or the only one that is here.
fn class_of<'a>(page: &'a api::Page, asked: &'a Pairs) -> Option<&'a str> {
    let here: BTreeSet<&str> = page.items.iter().map(|item| item.class.as_str()).collect();
    asked.get("class").or_else(|| here.first().copied().filter(|_| here.len() == 1))
}

fn list(page: &api::Page, asked: &Pairs, shell: &Shell, now_ms: u64) -> Markup {
    if page.items.is_empty() {
        return nothing(page, asked);
    }
    let class = class_of(page, asked).filter(|_| shell.may_change());
    let others = asked.only(&FILTERS).filter(|(name, _)| *name != "class");
    html! {
        (reasons(page, asked))
        @match class {
            Some(class) => {
                form method="get" action="/dead-letters/replay" {
                    input type="hidden" name="class" value=(class);
                    p.actions {
                        a.button.primary href=(link("/dead-letters/replay", others.chain([("class", class)]))) {
                            "Replay all that match…"
                        }
                        " " button.button type="submit" { "Replay the ticked…" }
                    }
                    (table(page, true, now_ms))
                }
            }
            None => {
                @if shell.may_change() { p.quiet { "Choose one class to replay its jobs." } }
                (table(page, false, now_ms))
            }
        }
        (more(page, asked))
    }
}

/// What they died of, each leading to those alone: reasons are compared whole, and nobody types them.
fn reasons(page: &api::Page, asked: &Pairs) -> Markup {
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for item in &page.items {
        *sums.entry((&item.reason, &item.code)).or_default() += 1;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, n)| Reverse(*n));
    let is_choice = sums.len() > 1 || asked.get("reason").or(asked.get("code")).is_some();
    let chosen = |name: &str| name == "class" || name == "state";
    html! {
        @if is_choice {
            ul.reasons aria-label="Reasons on this page" {
                @for ((reason, code), n) in sums.into_iter().take(REASONS) {
                    @let query = asked.only(&FILTERS).filter(|(name, _)| chosen(name));
                    li {
                        a href=(link("/dead-letters", query.chain([("reason", reason), ("code", code)]))) {
                            strong { (count(n)) } " " (if reason.is_empty() { "no reason" } else { reason })
                            @if !code.is_empty() && !reason.contains(code) { " · " (code) }
                        }
                    }
                }
            }
        }
    }
}

/// A page may be empty and still have another behind it: a call looks at a thousand records.
fn nothing(page: &api::Page, asked: &Pairs) -> Markup {
    let is_filtered = asked.get("reason").or(asked.get("code")).is_some();
    html! {
        @if page.next_cursor.is_some() {
            p { "None of the " (count(page.examined as u64)) " looked at so far matches." }
            (more(page, asked))
        } @else if is_filtered {
            (empty("No job matches.", html! {
                "Reason and code are compared with those of the last attempt, whole: "
                code { "429" } ", or a reason as it stands in the list."
            }))
        } @else {
            (empty("No job waits for a person here.", html! {
                "A throttled job never comes here for that alone: it waits in pending until the provider takes it."
            }))
        }
    }
}

fn more(page: &api::Page, asked: &Pairs) -> Markup {
    let cursor = page.next_cursor.as_deref().unwrap_or_default();
    let query = asked.only(&FILTERS).chain([("cursor", cursor)]);
    html! {
        nav.pager aria-label="Parts of the list" {
            @if asked.get("cursor").is_some() { a href=(link("/dead-letters", asked.only(&FILTERS))) { "From the start" } }
            @if page.next_cursor.is_some() { " " a rel="next" href=(link("/dead-letters", query)) { "Further" } }
        }
    }
}

fn table(page: &api::Page, ticks: bool, now_ms: u64) -> Markup {
    html! {
        div.scroll {
            table.cards {
                thead {
                    tr {
                        @if ticks { td {} }
                        @for name in ["Key", "State", "For", "Code", "Last outcome", "Reason"] { th scope="col" { (name) } }
                        th.n scope="col" { "Attempts" }
                        th scope="col" { "Campaign" }
                    }
                }
                tbody { @for item in &page.items { (row(item, ticks, now_ms)) } }
            }
        }
    }
}

fn row(item: &DeadLetter, ticks: bool, now_ms: u64) -> Markup {
    let reason = item.problem.as_ref().unwrap_or(&item.reason);
    html! {
        tr data-key={ (item.class) "/" (item.key) } {
            @if ticks {
                td.tick { input type="checkbox" name="keys" value=(item.key) aria-label={ "Replay " (item.key) }; }
            }
            th.key scope="row" {
                a href=(job_link(&item.class, &item.key)) { (item.key) } " " span.quiet { (item.class) }
            }
            td data-name="State" { (state(item.state)) }
            td.nowrap data-name="For" { (span(coarse(now_ms.saturating_sub(item.since_ms)))) }
            td data-name="Code" { @if !item.code.is_empty() { code { (item.code) } } }
            td data-name="Last outcome" { (plain(&item.outcome)) }
            td data-name="Reason" { (reason) }
            td.n data-name="Attempts" { (item.job.as_ref().map_or(0, |job| job.attempts)) }
            td data-name="Campaign" { (item.job.as_ref().map_or("", |job| &job.campaign)) }
        }
    }
}

/// Nobody needs the seconds of an hour, and without them a list that rests does not change.
fn coarse(ms: u64) -> u64 {
    if ms < 60_000 { ms / 1_000 * 1_000 } else { ms / 60_000 * 60_000 }
}
