//! Where an answer says how long to wait, and in which unit.

use super::condition::find;
use super::facts::{Facts, Found};
use super::fields::{Fields, text};
use super::pointer::Pointer;
use crate::{Fault, rate_limit_reset, retry_after};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Nobody means a later moment than this: 366 days. One wrong guess must not park a job for decades (failures 13).
const LATEST_MS: u64 = 366 * 86_400_000;
/// How far behind its marker a number or date may begin, and how much of it is read.
const REACH_BYTES: usize = 64;

/// Where a wait is written: `wait = { header = "x-ratelimit-reset", unit = "epoch_s" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    place: Place,
    unit: Unit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Header(String),
    Body(Pointer),
    /// The first number or date behind this text, in lower case.
    Text(String),
    /// Nowhere, not even in `Retry-After`: what stands there is about something else.
    Nowhere,
}

/// How a wait is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds to go; a decimal is rounded up.
    S,
    /// Milliseconds to go.
    Ms,
    /// An instant in seconds since 1970.
    EpochS,
    /// An instant in milliseconds since 1970.
    EpochMs,
    /// An HTTP date, or RFC 3339; without an offset it is UTC.
    Date,
    /// A date, or a number told apart by its size: seconds to go, an instant in s, an instant in ms.
    Auto,
}

impl Wait {
    pub(super) fn read(path: &str, value: &Value) -> Result<Self, Fault> {
        if value.as_str() == Some("none") {
            return Ok(Self { place: Place::Nowhere, unit: Unit::Auto });
        }
        let mut fields = Fields::of(path, value)
            .map_err(|_| Fault::new(path, "must be \"none\" or a table with header, body or text"))?;
        let header = fields.optional("header", text)?.map(|name| Place::Header(name.to_ascii_lowercase()));
        let body = fields.optional("body", |value| Pointer::parse(&text(value)?))?.map(Place::Body);
        let behind = fields.optional("text", text)?.map(|text| Place::Text(text.to_ascii_lowercase()));
        let unit = fields.optional("unit", unit)?.unwrap_or(Unit::Auto);
        fields.finish()?;
        match [header, body, behind].into_iter().flatten().collect::<Vec<_>>().as_slice() {
            [place] => Ok(Self { place: place.clone(), unit }),
            _ => Err(Fault::new(path, "must name one place: header, body or text")),
        }
    }

    /// The wait in ms. What the body says is more exact than `Retry-After`, which is more exact than other headers.
    pub(super) fn find_ms(&self, facts: &Facts<'_>, now_ms: u64) -> Option<u64> {
        let from_ms = facts.measured_from_ms(now_ms);
        let asked = || asked_ms(facts, now_ms);
        let first = |values: Vec<Found<'_>>| {
            values.iter().filter_map(Found::text).find_map(|value| self.unit.wait_ms(value, from_ms))
        };
        let found = match &self.place {
            Place::Nowhere => return None,
            Place::Header(name) => asked().or_else(|| first(facts.headers(name))),
            Place::Body(pointer) => first(facts.values(pointer)),
            Place::Text(marker) => {
                behind(facts, marker).and_then(|text| self.unit.first_in_ms(&text, from_ms))
            }
        };
        found.or_else(asked)
    }
}

/// The wait of `Retry-After`, in ms.
pub(super) fn asked_ms(facts: &Facts<'_>, now_ms: u64) -> Option<u64> {
    facts.header("retry-after").and_then(|value| retry_after::parse(value, facts.header("date"), now_ms))
}

/// The wait an answer names by itself, in ms: `Retry-After`, else, of a throttle, when a used-up allowance is there again.
pub(super) fn default_ms(facts: &Facts<'_>, is_throttled: bool, now_ms: u64) -> Option<u64> {
    let reset_ms =
        || facts.http.filter(|_| is_throttled).and_then(|http| rate_limit_reset::wait_ms(http, now_ms));
    asked_ms(facts, now_ms).or_else(reset_ms)
}

fn unit(value: &Value) -> Result<Unit, String> {
    match value.as_str() {
        Some("s") => Ok(Unit::S),
        Some("ms") => Ok(Unit::Ms),
        Some("epoch_s") => Ok(Unit::EpochS),
        Some("epoch_ms") => Ok(Unit::EpochMs),
        Some("date") => Ok(Unit::Date),
        Some("auto") => Ok(Unit::Auto),
        _ => Err("must be s, ms, epoch_s, epoch_ms, date or auto".into()),
    }
}

/// What stands behind a marker, as text.
fn behind(facts: &Facts<'_>, marker: &str) -> Option<String> {
    let at = find(facts.lower_head(), marker)? + marker.len();
    let rest = &facts.head()[at..];
    Some(String::from_utf8_lossy(&rest[..rest.len().min(REACH_BYTES)]).into_owned())
}

impl Unit {
    /// The wait in ms that a value names, measured from `from_ms`; a moment in the past is no wait.
    fn wait_ms(self, value: &str, from_ms: u64) -> Option<u64> {
        let value = value.trim();
        let until = |at_ms: u64| Some(at_ms.saturating_sub(from_ms)).filter(|&ms| ms <= LATEST_MS);
        match self {
            Self::S => retry_after::seconds_ms(value),
            Self::Ms => retry_after::seconds_ms(value).map(|ms| ms.div_ceil(1_000)),
            Self::EpochS => retry_after::seconds_ms(value).and_then(until),
            Self::EpochMs => retry_after::seconds_ms(value).and_then(|ms| until(ms / 1_000)),
            Self::Date => date_ms(value).and_then(until),
            Self::Auto => date_ms(value)
                .and_then(until)
                .or_else(|| rate_limit_reset::by_magnitude_ms(value, from_ms).filter(|&ms| ms <= LATEST_MS)),
        }
    }

    /// The wait of the first date, else of the first number, in a text.
    fn first_in_ms(self, text: &str, from_ms: u64) -> Option<u64> {
        let date = || dates(text).find_map(|date| Self::Date.wait_ms(date, from_ms));
        let number = || first_number(text).and_then(|number| self.wait_ms(number, from_ms));
        match self {
            Self::Date => date(),
            Self::Auto => date().or_else(number),
            _ => number(),
        }
    }
}

fn date_ms(value: &str) -> Option<u64> {
    let instant = || value.parse::<jiff::Timestamp>().ok();
    let utc = || TimeZone::UTC.to_timestamp(value.parse::<DateTime>().ok()?).ok();
    let ms = || instant().or_else(utc).and_then(|at| u64::try_from(at.as_millisecond()).ok());
    // A bare number is no date, though compact ISO 8601 would read eight digits as one.
    let is_number = value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_number { None } else { retry_after::date_ms(value).or_else(ms) }
}

/// What might be a date: from the start of each word, the rest up to a quote or bracket, then one word less each time.
fn dates(text: &str) -> impl Iterator<Item = &str> {
    let word_starts = text.char_indices().filter(|&(at, c)| {
        let before = text[..at].chars().next_back();
        c.is_ascii_alphanumeric() && before.is_none_or(|c| !c.is_ascii_alphanumeric())
    });
    word_starts.flat_map(move |(at, _)| {
        let rest = &text[at..];
        let end = rest.find(['"', '\'', '<', '>', '(', ')', '[', ']', '{', '}']).unwrap_or(rest.len());
        let rest = &rest[..end];
        let ends = rest.match_indices(' ').map(|(end, _)| end).chain([rest.len()]).collect::<Vec<_>>();
        ends.into_iter().rev().map(move |end| rest[..end].trim_end_matches([' ', '.', ',', ';', '!']))
    })
}

/// The first plain number; one behind a minus is none.
fn first_number(text: &str) -> Option<&str> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    if text[..from].ends_with('-') {
        return None;
    }
    let number = &text[from..];
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    Some(number[..end].trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
