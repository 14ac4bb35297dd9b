//! `/dead-letters/replay`: first what would happen, then step by step what does.
//!
//! The preview is the API's dry run. A post moves what one call looks at and leads back to the preview of the rest, which a
//! person or the script sends again. What was done so far stands in the address and is only for reading.

use super::dead_letters::{DEAD, FILTERS};
use super::fault::{Answer, Fault};
use super::form::{InForm, InQuery, Pairs, job_link, link};
use super::layout::{Area, Page, Shell};
use super::parts::{empty, number, section};
use super::words::{count, many, plain, rate, span};
use crate::access::Caller;
use crate::classes::{App, Known};
use crate::problem::Problem;
use crate::replays::{self as api, Report};
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};
use paceline_core::State as JobState;
use paceline_store::Store;
use std::sync::Arc;

/// What the API is asked.
const ASKED: [&str; 7] = ["class", "state", "reason", "code", "keys", "accept_duplicates", "cursor"];
/// Of what was held back so many are named.
const NAMED: usize = 20;

/// What was done so far.
#[derive(Debug, Clone, Copy, Default)]
struct SoFar {
    /// Records there were to look at when it began. What is replayed may die again and stand behind the others; without an
    /// end, a replay at a provider that refuses everything would go round for ever.
    most: usize,
    seen: usize,
    moved: usize,
    held: usize,
}

impl SoFar {
    fn of(asked: &Pairs) -> Self {
        let number = |name| asked.number(name);
        Self { most: number("most"), seen: number("seen"), moved: number("moved"), held: number("held") }
    }

    fn and(self, report: &Report) -> Self {
        Self {
            most: self.most,
            seen: self.seen + report.examined,
            moved: self.moved + report.replayed,
            held: self.held + report.held_back.len(),
        }
    }

    fn is_over(self) -> bool {
        self.most > 0 && self.seen >= self.most
    }

    fn pairs(self) -> [(&'static str, String); 4] {
        let pairs = [("most", self.most), ("seen", self.seen), ("moved", self.moved), ("held", self.held)];
        pairs.map(|(name, n)| (name, n.to_string()))
    }
}

/// `GET /dead-letters/replay`
pub(super) async fn preview(State(app): State<Arc<App>>, shell: Shell, InQuery(asked): InQuery) -> Answer {
    let class = asked.get("class").ok_or_else(|| Problem::invalid("class", "is missing: choose one"))?;
    let (known, so_far) = (app.class(class)?, SoFar::of(&asked));
    let finished = asked.get("finished").is_some();
    let body = if finished {
        done(&app, known, so_far).await?
    } else {
        ask(&app, &shell, known, &asked, so_far).await?
    };
    let main = html! {
        div.title { h1 { "Replay of " (class) } }
        (body)
        p { a href=(link("/dead-letters", asked.only(&FILTERS))) { "Back to the dead letters" } }
    };
    let title = format!("Replay of {class}");
    shell.page(&app, Page { title: &title, area: Area::DeadLetters, live: finished, main }).await
}

async fn ask(app: &App, shell: &Shell, known: &Known, asked: &Pairs, so_far: SoFar) -> Result<Markup, Fault> {
    let mut dry = asked.clone();
    dry.0.push(("dry_run".into(), "true".into()));
    let names: Vec<&str> = ASKED.iter().copied().chain(["dry_run"]).collect();
    let report = api::run(app, &shell.caller, dry.fields(&names)?).await?;
    let most = if so_far.most > 0 { so_far.most } else { total(app, known, asked).await? };
    let so_far = SoFar { most, ..so_far };
    let title = if so_far.seen > 0 { "What comes next" } else { "What would happen" };
    Ok(html! {
        @if so_far.seen > 0 { (progress(so_far)) }
        @if report.matched == 0 && report.missing == 0 && report.moved == 0 && report.next_cursor.is_none() {
            (empty("Nothing is left to replay.", html! { "Of " (report.examined) " looked at none matches." }))
        } @else {
            (section("preview", title, told(&report, known)))
            @if shell.may_change() { (order(&report, asked, so_far)) }
            @else { p.quiet { "An operator can replay them." } }
        }
    })
}

/// How many there are to look at: exact without a filter, else the most it can be.
async fn total(app: &App, known: &Known, asked: &Pairs) -> Result<usize, Fault> {
    let keys = asked.all("keys").count();
    if keys > 0 {
        return Ok(keys);
    }
    let depths = app.store.depths(&known.at).await?;
    let states: Vec<&str> = asked.all("state").collect();
    let is_asked = |state: &JobState| {
        if states.is_empty() { state.is_dead_letter() } else { states.contains(&state.as_str()) }
    };
    Ok(DEAD.iter().filter(|state| is_asked(state)).map(|state| depths.of(*state) as usize).sum())
}

fn progress(so_far: SoFar) -> Markup {
    let most = so_far.most.max(so_far.seen).max(1);
    html! {
        div.progress {
            label for="progress" data-say { (count(so_far.moved as u64)) " moved, " (count(so_far.held as u64)) " held back" }
            progress #progress value=(so_far.seen) max=(most) {}
            span.quiet { (count(so_far.seen as u64)) " of " (count(most as u64)) " looked at" }
        }
    }
}

fn told(report: &Report, known: &Known) -> Markup {
    let per_s = 1_000.0 / report.interval_ms;
    let lasts_ms = (report.replayable as f64 * report.interval_ms) as u64;
    html! {
        p {
            "Of " (many(report.examined as u64, "record", "records")) " looked at "
            strong { (count(report.matched as u64)) } " match."
            @if report.next_cursor.is_some() { " There are more behind them; the replay goes on with those." }
        }
        dl.numbers {
            (number("may go again", report.replayable as u64, "good"))
            (number("need your yes", report.needs_confirmation as u64, "asks"))
            (number("expired", report.expired as u64, "bad"))
            (number("are elsewhere now", report.moved as u64, ""))
            (number("are gone", report.missing as u64, ""))
        }
        @if !report.verdicts.is_empty() { (verdicts(report)) }
        @if report.replayable > 0 {
            p.quiet {
                "They keep key and send id, start with fresh counters, and leave at " (rate(per_s))
                ", a fifth of the rate, behind new work: about " (span(lasts_ms.max(1_000))) " for these."
            }
        }
        @if !report.held_back.is_empty() { (held_back(report, known)) }
    }
}

fn verdicts(report: &Report) -> Markup {
    html! {
        table.narrow {
            thead { tr { th scope="col" { "How it ended last" } th.n scope="col" { "Jobs" } } }
            tbody {
                @for (&verdict, &n) in &report.verdicts { tr { td { (in_words(verdict)) } td.n { (count(n as u64)) } } }
            }
        }
    }
}

fn in_words(verdict: &str) -> String {
    match verdict {
        "never_sent" | "not_sent" => "never reached the provider".to_owned(),
        "refused" => "refused by the provider".to_owned(),
        "ambiguous" => "may have been accepted".to_owned(),
        "unreadable" => "cannot be read by this version".to_owned(),
        other => plain(other),
    }
}

fn held_back(report: &Report, known: &Known) -> Markup {
    let rest = report.held_back.len().saturating_sub(NAMED);
    html! {
        details {
            summary { (many(report.held_back.len() as u64, "job is", "jobs are")) " held back" }
            ul {
                @for one in report.held_back.iter().take(NAMED) {
                    li {
                        a href=(job_link(known.name(), &one.key)) { (one.key) } ": " (plain(one.why))
                        @if let Some(state) = one.state { " (" (state) ")" }
                    }
                }
                @if rest > 0 { li.quiet { "and " (count(rest as u64)) " more" } }
            }
        }
    }
}

/// The order itself; the script sends it again for as long as there is more.
fn order(report: &Report, asked: &Pairs, so_far: SoFar) -> Markup {
    let goes_on = so_far.seen > 0;
    let names: Vec<&str> = ASKED.iter().copied().filter(|name| *name != "accept_duplicates").collect();
    let agreed = asked.get("accept_duplicates").is_some();
    // Where nothing may go without a yes, the yes is part of the order.
    let needs_yes = report.replayable == 0 && report.next_cursor.is_none();
    let least = if needs_yes { report.needs_confirmation } else { report.replayable };
    let label = match (goes_on, report.next_cursor.is_some()) {
        (true, _) => "Go on".to_owned(),
        (false, true) => "Replay these and all behind them".to_owned(),
        (false, false) => format!("Replay {}", many(least as u64, "job", "jobs")),
    };
    html! {
        form.order method="post" action="/dead-letters/replay" data-run data-more[goes_on] {
            @for (name, text) in asked.only(&names) { input type="hidden" name=(name) value=(text); }
            @for (name, text) in so_far.pairs() { input type="hidden" name=(name) value=(text); }
            @if report.needs_confirmation > 0 || agreed {
                label.yes {
                    input type="checkbox" name="accept_duplicates" value="true" checked[agreed] required[needs_yes];
                    " Send those again, too, that may have been accepted: somebody may get the message twice."
                }
            }
            button.button.primary type="submit" { (label) }
            button.button type="button" data-stop hidden { "Stop" }
        }
    }
}

/// Nothing is left to do here: how they leave.
async fn done(app: &App, known: &Known, so_far: SoFar) -> Result<Markup, Fault> {
    let depths = app.store.depths(&known.at).await?;
    let name = known.name();
    Ok(html! {
        p.told role="status" data-say {
            strong { (many(so_far.moved as u64, "job is", "jobs are")) " pending again" }
            ", " (count(so_far.held as u64)) " held back, " (count(so_far.seen as u64)) " looked at."
        }
        (section("leave", "How they leave", html! {
            dl.numbers {
                @for state in [JobState::Pending, JobState::InFlight, JobState::Submitted, JobState::Failed] {
                    (number(&plain(state.as_str()), depths.of(state), super::parts::tone(state)))
                }
                @for state in [JobState::Deferred, JobState::Unconfirmed] {
                    (number(state.as_str(), depths.of(state), "asks"))
                }
            }
            p { "These are all jobs of " a href={ "/classes/" (name) } { (name) } ", which says what holds them up." }
        }))
    })
}

/// `POST /dead-letters/replay`
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    InForm(sent): InForm,
) -> Answer {
    let report = api::run(&app, &caller, sent.fields(&ASKED)?).await?;
    let so_far = SoFar::of(&sent).and(&report);
    let next = report.next_cursor.as_deref().filter(|_| !so_far.is_over());
    let so_far = so_far.pairs();
    let so_far = so_far.iter().map(|(name, text)| (*name, text.as_str()));
    let to = match next {
        Some(cursor) => {
            let names: Vec<&str> = ASKED.iter().copied().filter(|name| *name != "cursor").collect();
            let query = sent.only(&names).chain([("cursor", cursor)]).chain(so_far);
            link("/dead-letters/replay", query)
        }
        None => link("/dead-letters/replay", sent.only(&FILTERS).chain([("finished", "true")]).chain(so_far)),
    };
    Ok(Redirect::to(&to).into_response())
}
