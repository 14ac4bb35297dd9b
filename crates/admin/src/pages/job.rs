//! `/job?class=&key=`: everything that is known of one job; a viewer sees no payload.

use super::fault::Answer;
use super::form::{InQuery, link};
use super::layout::{Area, Page, Shell};
use super::parts::{as_of, empty, explanation, section, state};
use super::words::{moment, near, plain, span};
use crate::classes::App;
use crate::explain::{self, Explanation};
use crate::jobs::no_such_job;
use crate::jobs::view::{AttemptView, JobView, Known};
use crate::problem::Problem;
use axum::extract::State;
use maud::{Markup, html};
use paceline_core::{JobKey, State as JobState};
use paceline_store::Store;
use serde_json::Value;
use std::sync::Arc;

/// The route.
pub(super) async fn show(State(app): State<Arc<App>>, shell: Shell, InQuery(asked): InQuery) -> Answer {
    let class = asked.get("class").ok_or_else(|| Problem::invalid("class", "is missing"))?;
    let key = asked.get("key").ok_or_else(|| Problem::invalid("key", "is missing"))?;
    let (known, key) = (app.class(class)?, JobKey::new(key).map_err(Problem::from)?);
    let stored = app.store.get(&known.at, key.as_str()).await?.ok_or_else(no_such_job)?;
    let score_ms = stored.score_ms;
    let view = JobView::of(&known.config.name, &key, stored, app.deployment_id, shell.caller.role);
    let is_waiting = view.state.is_some_and(JobState::is_waiting);
    let why = match is_waiting {
        true => Some(explain::read(&app, known, Some(key.as_str().to_owned())).await?),
        false => None,
    };
    let now_ms = app.store.now_ms();
    let main = html! {
        div.title { h1.key { (key.as_str()) } (as_of(now_ms)) }
        (head(&view, score_ms, now_ms))
        (next(&view, &shell, why.as_ref(), now_ms))
        @if let Some(job) = &view.job {
            (section("attempts", "Attempts", attempts(job, now_ms)))
            (section("facts", "What is known", facts(job)))
            (section("document", "What was pushed", document(job)))
        }
    };
    shell.page(&app, Page { title: key.as_str(), area: Area::Nowhere, live: true, main }).await
}

/// Where it is, and since or until when.
fn head(view: &JobView, score_ms: u64, now_ms: u64) -> Markup {
    html! {
        p {
            @match view.state {
                Some(at) => {
                    (state(at)) " "
                    @match at {
                        at if at.is_waiting() => { "next attempt not before " (near(score_ms, now_ms)) }
                        JobState::InFlight => { "leased until " (near(score_ms, now_ms)) }
                        _ => { "since " (near(score_ms, now_ms)) }
                    }
                }
                None => span.mark.bad { "in no state" },
            }
            " · class " a href={ "/classes/" (view.class) } { (view.class) }
            @if let Some(job) = view.job.as_ref().filter(|job| !job.campaign.is_empty()) { " · campaign " (job.campaign) }
        }
        @if let Some(problem) = &view.problem { p.fault role="alert" { (problem) } }
    }
}

/// What happens next, or what a person can do.
fn next(view: &JobView, shell: &Shell, why: Option<&Explanation>, now_ms: u64) -> Markup {
    let is_dead = view.state.is_some_and(|state| state.is_dead_letter() || state == JobState::Failed);
    let (class, key) = (view.class.as_str(), view.key.as_str());
    html! {
        @if let Some(why) = why { (section("why", "Why not now?", explanation(why, now_ms))) }
        @if is_dead && shell.may_change() {
            p {
                a.button.primary href=(link("/dead-letters/replay", [("class", class), ("keys", key)])) { "Replay this job…" }
            }
        }
        @if is_dead && !shell.may_change() { p.quiet { "It waits for a person; an operator can replay it." } }
    }
}

fn attempts(job: &Known, now_ms: u64) -> Markup {
    html! {
        @if job.attempts.is_empty() {
            (empty("Not tried yet.", html! {
                "Each attempt is listed here: what the provider said, what that meant, and which rule decided."
            }))
        } @else {
            div.scroll {
                table.cards {
                    thead {
                        tr {
                            @for name in ["When", "Code", "Meant", "Rule", "Asked to wait", "Took", "Provider's id"] {
                                th scope="col" { (name) }
                            }
                        }
                    }
                    tbody { @for one in job.attempts.iter().rev() { (attempt(one, now_ms)) } }
                }
            }
        }
    }
}

fn attempt(one: &AttemptView, now_ms: u64) -> Markup {
    let told = &one.attempt;
    html! {
        tr {
            th.nowrap scope="row" { (near(told.at_ms, now_ms)) }
            td data-name="Code" { @if !told.code.is_empty() { code { (told.code) } } }
            td data-name="Meant" {
                (plain(&told.outcome))
                @if !told.reason.is_empty() { ": " (told.reason) }
                @if !told.snippet.is_empty() { pre.snippet { (told.snippet) } }
            }
            td data-name="Rule" { (told.rule) }
            td.nowrap data-name="Asked to wait" { (told.retry_after_ms.map(span).unwrap_or_default()) }
            td.nowrap data-name="Took" { (told.latency_ms.map(span).unwrap_or_default()) }
            td.key data-name="Provider's id" { (told.message_id.as_deref().unwrap_or_default()) }
        }
    }
}

fn facts(job: &Known) -> Markup {
    let (counters, flags) = (&job.counters, &job.flags);
    let flags = [
        (flags.ambiguous, "may have been accepted"),
        (flags.started, "was about to be written"),
        (flags.cancel, "is to be cancelled"),
        (flags.late, "was accepted after its lease"),
    ];
    let flags: Vec<&str> = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, words)| words).collect();
    html! {
        dl.facts {
            div { dt { "Pushed" } dd { (moment(job.created_at_ms)) } }
            @if let Some(at_ms) = job.expires_at_ms { div { dt { "Expires" } dd { (moment(at_ms)) } } }
            div { dt { "Send id" } dd.key { (job.send_id) } }
            div { dt { "Attempts" } dd { (counters.attempts) ", of them spent " (counters.spent) } }
            div { dt { "Throttled" } dd { (counters.throttles) " times: spends nothing" } }
            div { dt { "Leases lost" } dd { (counters.lapses) } }
            div { dt { "Replayed" } dd { (job.replays) } }
            div { dt { "Cost" } dd { (job.cost) } }
            @if !flags.is_empty() { div { dt { "Marks" } dd { (flags.join(", ")) } } }
        }
    }
}

fn document(job: &Known) -> Markup {
    let pretty = job.document.as_ref().map(|raw| {
        let value =
            serde_json::from_str::<Value>(raw.get()).and_then(|value| serde_json::to_string_pretty(&value));
        value.unwrap_or_else(|_| raw.get().to_owned())
    });
    html! {
        @match pretty.as_ref().or(job.document_text.as_ref()) {
            Some(text) => pre { (text) },
            None => p.quiet { "Of a job that is over only the receipt is kept." },
        }
        @if job.payload_hidden { p.quiet { "A viewer sees neither payload nor request." } }
    }
}
