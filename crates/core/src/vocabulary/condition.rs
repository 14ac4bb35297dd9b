//! When a rule fires: `protocol`, `status`, `header`, `body`, `text`, all of them.

use super::facts::{Facts, Protocol, Status};
use super::fields::{Fields, some_of, texts};
use super::pointer::Pointer;
use super::predicate::{Predicate, lower};
use crate::Fault;
use serde_json::Value;

/// What must hold of an answer, compiled.
///
/// ```toml
/// protocol = "http"                          # http (default), smpp, link
/// status = [429, "5xx", "520-527", "0x58"]   # a number, class or range; of a link: where it broke
/// header = { "retry-after" = { exists = true }, "x-error" = "throttle" }
/// body = { "/messages/*/status" = { every = "0" }, "/code" = [20429, "E429"] }
/// text = ["too fast", "slow down"]           # one of these in the first 4 KiB, whatever the case
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    protocol: Protocol,
    statuses: Vec<Wanted>,
    headers: Vec<(String, Predicate)>,
    body: Vec<(Pointer, Predicate)>,
    text: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Range(u32, u32),
    Broke(String),
}

impl Condition {
    /// The value at one place of the body equals a text: the shortest success rule.
    pub fn body_is(pointer: Pointer, wanted: impl Into<String>) -> Self {
        Self {
            protocol: Protocol::Http,
            statuses: Vec::new(),
            headers: Vec::new(),
            body: vec![(pointer, Predicate::is(wanted))],
            text: Vec::new(),
        }
    }

    /// Reads the table at `path`; one that asks for nothing is refused, because it would hold of everything.
    pub fn read(path: &str, value: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(path, value)?;
        let protocol = fields.optional("protocol", protocol)?.unwrap_or(Protocol::Http);
        let statuses = fields.optional("status", |value| some_of(value, |v| wanted(protocol, v)))?;
        let headers = predicates(&mut fields, "header", header_name)?;
        let body = predicates(&mut fields, "body", Pointer::parse)?;
        let text = fields.optional("text", texts)?.map(lower).unwrap_or_default();
        fields.finish()?;
        let has = [("header", !headers.is_empty()), ("body", !body.is_empty()), ("text", !text.is_empty())];
        let may_have: &[&str] = match protocol {
            Protocol::Http => &["header", "body", "text"],
            Protocol::Smpp => &[],
            Protocol::Link => &["text"],
        };
        if let Some((key, _)) = has.iter().find(|(key, has)| *has && !may_have.contains(key)) {
            return Err(Fault::new(format!("{path}.{key}"), "is not part of an answer by this protocol"));
        }
        let statuses = statuses.unwrap_or_default();
        if statuses.is_empty() && headers.is_empty() && body.is_empty() && text.is_empty() {
            return Err(Fault::new(path, "asks for nothing: status, header, body or text"));
        }
        Ok(Self { protocol, statuses, headers, body, text })
    }

    /// What it is asked of.
    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn holds(&self, facts: &Facts<'_>) -> bool {
        self.protocol == facts.protocol
            && (self.statuses.is_empty() || self.statuses.iter().any(|wanted| wanted.is(facts.status)))
            && self.headers.iter().all(|(name, asked)| asked.holds(&facts.headers(name), true))
            && self.body.iter().all(|(pointer, asked)| {
                let values = facts.values(pointer);
                let is_whole = values.len() < super::facts::MOST_VALUES;
                asked.holds(&values, is_whole)
            })
            && (self.text.is_empty() || self.text.iter().any(|text| contains(facts.lower_head(), text)))
    }
}

impl Wanted {
    fn is(&self, status: Status<'_>) -> bool {
        match (self, status) {
            (Self::Range(from, to), Status::Number(number)) => (*from..=*to).contains(&number),
            (Self::Broke(wanted), Status::Broke(kind, phase)) => wanted == kind || wanted == phase,
            _ => false,
        }
    }
}

fn contains(head: &[u8], text: &str) -> bool {
    find(head, text).is_some()
}

/// Where a text begins in a head that is in lower case.
pub(super) fn find(head: &[u8], text: &str) -> Option<usize> {
    let (first, length) = (*text.as_bytes().first()?, text.len());
    (0..(head.len() + 1).saturating_sub(length))
        .find(|&at| head[at] == first && head[at..at + length] == *text.as_bytes())
}

fn predicates<K>(
    fields: &mut Fields,
    key: &'static str,
    read: impl Fn(&str) -> Result<K, String>,
) -> Result<Vec<(K, Predicate)>, Fault> {
    let Some((path, value)) = fields.take(key) else { return Ok(Vec::new()) };
    let table = value.as_object().filter(|table| !table.is_empty());
    let table = table.ok_or_else(|| Fault::new(&path, "must be a table with at least one entry"))?;
    let read = |(name, value): (&String, &Value)| {
        let path = format!("{path}.{name:?}");
        let key = read(name).map_err(|problem| Fault::new(&path, problem))?;
        Ok((key, Predicate::read(&path, value)?))
    };
    table.iter().map(read).collect()
}

fn header_name(name: &str) -> Result<String, String> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("is not a header name (RFC 9110 §5.1)".into());
    }
    Ok(name.to_ascii_lowercase())
}

fn protocol(value: &Value) -> Result<Protocol, String> {
    match value.as_str() {
        Some("http") => Ok(Protocol::Http),
        Some("smpp") => Ok(Protocol::Smpp),
        Some("link") => Ok(Protocol::Link),
        _ => Err("must be http, smpp or link".into()),
    }
}

fn wanted(protocol: Protocol, value: &Value) -> Result<Wanted, String> {
    if protocol == Protocol::Link {
        let is_word = |text: &&str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let word = value.as_str().filter(|text| !text.is_empty()).filter(is_word);
        let theirs = word.filter(|word| *word != crate::outcome::SHUTDOWN);
        return theirs
            .map(|word| Wanted::Broke(word.into()))
            .ok_or_else(|| "must be not_sent, unanswered, or where it broke, as connect or deadline".into());
    }
    let range = match value {
        Value::Number(number) => number.as_u64().and_then(|n| u32::try_from(n).ok()).map(|n| (n, n)),
        Value::String(text) => range(text),
        _ => None,
    };
    range.filter(|(from, to)| from <= to).map(|(from, to)| Wanted::Range(from, to)).ok_or_else(|| {
        "must be a status as 429, a class as \"4xx\", a range as \"520-527\" or, of SMPP, \"0x58\"".into()
    })
}

fn range(text: &str) -> Option<(u32, u32)> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u32 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some((number(from)?, number(to)?))
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
