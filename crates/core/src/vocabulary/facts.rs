//! One answer as rules look at it: what is asked for more than once is read once, and only if a rule asks.

use super::pointer::Pointer;
use crate::answer::{HttpAnswer, SmppAnswer};
use crate::retry_after;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::OnceCell;

/// How much of a body rules about text look at, in bytes.
pub const TEXT_BYTES: usize = 4096;
/// How many values a rule looks at behind one header or pointer.
pub(super) const MOST_VALUES: usize = 1_000;

/// What carried the answer, or failed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// An HTTP answer.
    Http,
    /// An SMPP answer.
    Smpp,
    /// No answer: where it broke is the status.
    Link,
}

/// The status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status<'a> {
    Number(u32),
    /// How it broke (`not_sent`, `unanswered`) and where (`connect`, `deadline`).
    Broke(&'a str, &'a str),
}

pub(super) struct Facts<'a> {
    pub(super) protocol: Protocol,
    pub(super) status: Status<'a>,
    pub(super) http: Option<&'a HttpAnswer>,
    body: &'a [u8],
    json: OnceCell<Option<Value>>,
    head: OnceCell<Vec<u8>>,
}

/// What stands at one place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A text, number or truth value, as text.
    Text(Cow<'a, str>),
    /// A list or table.
    Nested,
    /// Null, or an element of a list that lacks what was asked for.
    Nothing,
}

impl Found<'_> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nested | Self::Nothing => None,
        }
    }
}

impl<'a> Facts<'a> {
    fn new(protocol: Protocol, status: Status<'a>, http: Option<&'a HttpAnswer>, body: &'a [u8]) -> Self {
        Self { protocol, status, http, body, json: OnceCell::new(), head: OnceCell::new() }
    }

    pub(super) fn http(answer: &'a HttpAnswer) -> Self {
        let status = Status::Number(answer.status.into());
        Self::new(Protocol::Http, status, Some(answer), &answer.body)
    }

    pub(super) fn smpp(answer: &'a SmppAnswer) -> Self {
        Self::new(Protocol::Smpp, Status::Number(answer.status), None, &[])
    }

    pub(super) fn link(kind: &'a str, phase: &'a str, error: &'a str) -> Self {
        Self::new(Protocol::Link, Status::Broke(kind, phase), None, error.as_bytes())
    }

    /// A header's first value, by lower-case name; a blank one counts as absent.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.http?.header(name)
    }

    /// Every value of a header.
    pub(super) fn headers(&self, name: &str) -> Vec<Found<'a>> {
        let lines = self.http.map_or(&[][..], |answer| &answer.headers);
        let values = lines.iter().filter(|(n, _)| n == name).map(|(_, value)| value.trim());
        values.filter(|value| !value.is_empty()).take(MOST_VALUES).map(|v| Found::Text(v.into())).collect()
    }

    /// Every value at a place of the body; none where the body is no JSON.
    pub(super) fn values(&self, pointer: &Pointer) -> Vec<Found<'_>> {
        let mut values = Vec::new();
        if let Some(document) = self.json() {
            pointer.any(document, &mut |value| {
                values.push(found(value));
                values.len() >= MOST_VALUES
            });
        }
        values
    }

    /// The body's head, ASCII letters in lower case; as long as [`Self::head`].
    pub(super) fn lower_head(&self) -> &[u8] {
        self.head.get_or_init(|| self.head().to_ascii_lowercase())
    }

    pub(super) fn head(&self) -> &'a [u8] {
        &self.body[..self.body.len().min(TEXT_BYTES)]
    }

    /// The moment an instant in this answer is measured against: its own `Date`, so that neither clock matters.
    pub(super) fn measured_from_ms(&self, now_ms: u64) -> u64 {
        self.header("date").and_then(retry_after::date_ms).unwrap_or(now_ms)
    }

    fn json(&self) -> Option<&Value> {
        // Some servers put a byte order mark before their JSON.
        let body = self.body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(self.body);
        self.json.get_or_init(|| serde_json::from_slice(body).ok()).as_ref()
    }
}

fn found(value: &Value) -> Found<'_> {
    match value {
        Value::Null => Found::Nothing,
        Value::String(text) => Found::Text(text.as_str().into()),
        other => super::fields::plain(other).map_or(Found::Nested, |text| Found::Text(text.into())),
    }
}
