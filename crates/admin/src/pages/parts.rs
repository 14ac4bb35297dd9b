//! Small pieces that several pages are made of.

use super::fault::sentence;
use super::words::{clock, count, near, percent, plain, span};
use crate::budgets::{BudgetView, QuotaView};
use crate::explain::Explanation;
use crate::queues::HoldView;
use maud::{Markup, html};
use paceline_core::State;
use paceline_core::decide::HoldCause;

/// A section with its heading, which names it for a screen reader.
pub(super) fn section(id: &str, title: &str, body: Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 #(id) { (title) } (body) } }
}

/// Where there is nothing to show: what will stand here, and how it comes here.
pub(super) fn empty(title: &str, teaches: Markup) -> Markup {
    html! { div.empty { p.lead { (title) } p { (teaches) } } }
}

/// One number with its name.
pub(super) fn number(name: &str, value: u64, tone: &str) -> Markup {
    let tone = if value == 0 { "zero" } else { tone };
    html! { div class={ "number " (tone) } { dt { (name) } dd { (count(value)) } } }
}

/// A state as a mark; its colour says only how good or bad the news is.
pub(super) fn state(state: State) -> Markup {
    html! { span class={ "mark " (tone(state)) } { (plain(state.as_str())) } }
}

/// `good`, `bad`, `wait` or nothing.
pub(super) fn tone(state: State) -> &'static str {
    match state {
        State::Submitted => "good",
        State::Failed | State::Expired => "bad",
        State::Deferred | State::Unconfirmed => "asks",
        State::Pending => "wait",
        State::Queued | State::InFlight | State::Cancelled => "",
    }
}

/// Why it is silent, since whom, until when.
pub(super) fn hold(hold: &HoldView, now_ms: u64) -> Markup {
    let tone = if matches!(hold.cause, HoldCause::Suspect | HoldCause::Outage) { "bad" } else { "wait" };
    html! {
        span class={ "mark " (tone) } { "held: " (plain(hold.cause.as_str())) }
        " " span.quiet {
            @match hold.until_ms {
                Some(until_ms) => {
                    "until " (near(until_ms, now_ms)) " (" (span(until_ms.saturating_sub(now_ms))) ")"
                }
                None => "until somebody resumes it",
            }
            @if !hold.by.is_empty() { ", by " (hold.by) }
        }
    }
}

/// Why not now, and when at the earliest.
pub(super) fn explanation(found: &Explanation, now_ms: u64) -> Markup {
    html! {
        p.lead { (sentence(&found.words)) }
        @match found.earliest_ms {
            Some(at_ms) if at_ms > now_ms + 50 => {
                p.quiet { "At the earliest at " (near(at_ms, now_ms)) ", in " (span(at_ms - now_ms)) "." }
            }
            Some(_) => {}
            None if found.term.starts_with("hold:") => {
                p.quiet { "Nobody can tell when: something has to change first." }
            }
            None => {}
        }
    }
}

/// How much of each quota is used, with the line from which somebody should know.
pub(super) fn quotas(view: &BudgetView) -> Markup {
    html! {
        @if !view.quotas.is_empty() {
            ul.quotas { @for quota in &view.quotas { li { (gauge(quota)) } } }
        }
    }
}

fn gauge(quota: &QuotaView) -> Markup {
    let tone = if quota.alert { "bad" } else { "good" };
    let width = format!("{:.1}", quota.share.clamp(0.0, 1.0) * 100.0);
    let told = format!("{} used of {}, {}", count(quota.used), quota.quota, percent(quota.share));
    html! {
        div.line {
            span { "Quota " (quota.quota) }
            span { strong { (count(quota.used)) } " of " (count(quota.limit)) " · " (percent(quota.share)) }
        }
        svg.gauge viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=(told) {
            rect.track width="100" height="8" {}
            rect class={ "fill " (tone) } width=(width) height="8" {}
            path.limit d="M70 0V8" { title { "70 %: an alert" } }
        }
    }
}

/// A sentence; what stands in backticks is code.
pub(super) fn prose(words: &str) -> Markup {
    let words = sentence(words);
    html! {
        @for (index, piece) in words.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// A form that is one button.
pub(super) fn button(action: &str, label: &str, tone: &str) -> Markup {
    html! {
        form.inline method="post" action=(action) { button class={ "button " (tone) } type="submit" { (label) } }
    }
}

/// Pause with an end to choose, or resume where something is held.
pub(super) fn pause_or_resume(path: &str, what: &str, held: Option<&HoldView>) -> Markup {
    html! {
        @if held.is_some() {
            (button(&format!("{path}/resume"), &format!("Resume {what}"), "primary"))
        } @else {
            form.inline method="post" action={ (path) "/pause" } data-keep {
                label.unseen for="for_s" { "For how long" }
                select #for_s name="for_s" {
                    option value="600" { "for 10 minutes" }
                    option value="3600" { "for an hour" }
                    option value="" { "until somebody resumes it" }
                }
                button.button type="submit" { "Pause " (what) }
            }
        }
    }
}

/// What was done by the form before, from a closed set of words.
pub(super) fn told(word: Option<&str>) -> Markup {
    let words = match word {
        Some("limits") => "The new limits are in force, for every worker.",
        Some("dropped") => "The limits are those of the settings again.",
        Some("paused") => "Paused. What is in flight ends as it does; nothing more is taken.",
        Some("resumed") => "Resumed. Whatever hold was there is lifted.",
        _ => return html! {},
    };
    html! { p.told role="status" { (words) } }
}

/// When a page was right.
pub(super) fn as_of(now_ms: u64) -> Markup {
    html! { span.quiet.as-of { "as of " (clock(now_ms)) } }
}
