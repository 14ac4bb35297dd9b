//! The producer's document: one message, checked at the door, kept byte for byte.

use crate::request::RequestForm;
use crate::{Fault, JobKey};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;

/// Cost above this is refused.
pub const MAX_COST: u16 = 1_000;
/// The longest campaign tag, in bytes.
pub const MAX_CAMPAIGN_BYTES: usize = 40;
/// The default limit of a whole document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1_048_576;
/// No time may lie further ahead than ten years.
const HORIZON_MS: u64 = 10 * 366 * 86_400_000;
/// No time may lie before 2020: an instant in seconds, or 1970, is a unit mistake.
const EPOCH_2020_MS: u64 = 1_577_836_800_000;

/// A document that passed every check. Fields it does not know are kept in the stored bytes.
#[derive(Debug, Clone)]
pub struct Document {
    /// The caller's key, where one was given.
    pub key: Option<JobKey>,
    /// The class, where one was given.
    pub class: Option<String>,
    /// The payload, byte for byte.
    pub payload: Box<RawValue>,
    /// The job's own part of the request.
    pub request: RequestForm,
    /// Not sent before, in ms since the epoch.
    pub not_before_ms: Option<u64>,
    /// Not sent after, in ms since the epoch.
    pub expires_at_ms: Option<u64>,
    /// What it weighs against a budget.
    pub cost: u16,
    /// The campaign it is counted under; may be empty.
    pub campaign: String,
}

/// The shape serde reads; every field is loose so that a fault can name its field.
#[derive(Deserialize)]
struct Loose {
    #[serde(default)]
    key: Option<Value>,
    #[serde(default)]
    class: Option<Value>,
    payload: Option<Box<RawValue>>,
    #[serde(default)]
    request: Option<Value>,
    #[serde(default)]
    not_before: Option<Value>,
    #[serde(default)]
    expires_at: Option<Value>,
    #[serde(default)]
    cost: Option<Value>,
    #[serde(default)]
    tags: Option<Value>,
}

impl Document {
    /// Reads and checks a document. `now_ms` bounds its times to ten years ahead.
    pub fn parse(bytes: &[u8], now_ms: u64) -> Result<Self, Fault> {
        let loose: Loose =
            serde_json::from_slice(bytes).map_err(|error| Fault::new("document", error.to_string()))?;
        let payload = loose.payload.ok_or_else(|| Fault::new("payload", "is missing"))?;
        check_texts("payload", &value(payload.get(), "payload")?)?;
        let request = request(loose.request)?;
        let not_before_ms = instant("not_before", loose.not_before, now_ms)?;
        let expires_at_ms = instant("expires_at", loose.expires_at, now_ms)?;
        if let (Some(from), Some(until)) = (not_before_ms, expires_at_ms)
            && until <= from
        {
            return Err(Fault::new("expires_at", "must be after not_before"));
        }
        Ok(Self {
            key: text("key", loose.key)?.map(JobKey::new).transpose()?,
            class: text("class", loose.class)?,
            payload,
            request,
            not_before_ms,
            expires_at_ms,
            cost: cost(loose.cost)?,
            campaign: campaign(loose.tags)?,
        })
    }
}

/// The SHA-1, in lower-case hex, of a document's RFC 8785 form: the same content in another order of keys or
/// with other blanks has the same fingerprint. Both are hints against mistakes, not a defence.
pub fn fingerprint(document: &[u8]) -> Result<String, Fault> {
    let value: Value =
        serde_json::from_slice(document).map_err(|error| Fault::new("document", error.to_string()))?;
    let canonical = serde_json_canonicalizer::to_vec(&value)
        .map_err(|error| Fault::new("document", error.to_string()))?;
    Ok(Sha1::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect())
}

fn value(text: &str, field: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::new(field, error.to_string()))
}

/// NUL in a text breaks databases and terminals behind us; lone surrogates were refused by the parser.
fn check_texts(path: &str, value: &Value) -> Result<(), Fault> {
    let nul = |text: &str| text.contains('\0').then(|| Fault::new(path, "holds a NUL character"));
    match value {
        Value::String(text) => nul(text).map_or(Ok(()), Err),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| check_texts(&format!("{path}/{index}"), item)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
            nul(name).map_or(Ok(()), Err)?;
            check_texts(&format!("{path}/{name}"), item)
        }),
        _ => Ok(()),
    }
}

fn text(field: &str, value: Option<Value>) -> Result<Option<String>, Fault> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault::new(field, "must be a string")),
    }
}

fn request(value: Option<Value>) -> Result<RequestForm, Fault> {
    let Some(value) = value else { return Ok(RequestForm::default()) };
    let form: RequestForm =
        serde_json::from_value(value).map_err(|error| Fault::new("request", error.to_string()))?;
    form.check("request")?;
    Ok(form)
}

/// RFC 3339 with an offset: a time without one is somebody's local time, and nobody says whose.
fn instant(field: &str, value: Option<Value>, now_ms: u64) -> Result<Option<u64>, Fault> {
    let Some(text) = text(field, value)? else { return Ok(None) };
    let at: Timestamp = text.parse().map_err(|_| {
        Fault::new(
            field,
            format!("{text:?} is not an RFC 3339 time with an offset, like 2026-12-01T09:00:00Z"),
        )
    })?;
    let at_ms = u64::try_from(at.as_millisecond()).unwrap_or(0);
    if at_ms < EPOCH_2020_MS || at_ms > now_ms.saturating_add(HORIZON_MS) {
        return Err(Fault::new(field, format!("{text:?} is not between 2020 and ten years from now")));
    }
    Ok(Some(at_ms))
}

fn cost(value: Option<Value>) -> Result<u16, Fault> {
    let Some(value) = value else { return Ok(1) };
    let wrong = || Fault::new("cost", format!("must be a whole number from 1 to {MAX_COST} (max_cost)"));
    let cost = value.as_u64().and_then(|cost| u16::try_from(cost).ok()).ok_or_else(wrong)?;
    if (1..=MAX_COST).contains(&cost) { Ok(cost) } else { Err(wrong()) }
}

fn campaign(tags: Option<Value>) -> Result<String, Fault> {
    let tags: BTreeMap<String, String> = match tags {
        None => return Ok(String::new()),
        Some(tags) => {
            serde_json::from_value(tags).map_err(|_| Fault::new("tags", "must be an object of strings"))?
        }
    };
    let campaign = tags.get("campaign").cloned().unwrap_or_default();
    if campaign.len() > MAX_CAMPAIGN_BYTES || campaign.chars().any(char::is_control) {
        return Err(Fault::new(
            "tags.campaign",
            format!("must be at most {MAX_CAMPAIGN_BYTES} bytes without control characters"),
        ));
    }
    Ok(campaign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_MS: u64 = 1_796_000_000_000; // 2026-11-30

    fn fault(document: &str) -> String {
        Document::parse(document.as_bytes(), NOW_MS).map(|_| ()).unwrap_err().field
    }

    #[test]
    fn the_example_of_the_docs_passes() {
        let document = Document::parse(
            br#"{ "class": "bulk", "key": "welcome:42", "payload": { "to": "ada@example.org" }, "request": { "path": "/v1/send" },
                "not_before": "2026-12-01T10:00:00+01:00", "expires_at": "2026-12-01T18:00:00Z", "cost": 2,
                "tags": { "campaign": "launch" }, "later": [1] }"#,
            NOW_MS,
        )
        .unwrap();
        assert_eq!(document.not_before_ms, Some(1_796_115_600_000));
        assert_eq!((document.cost, document.campaign.as_str()), (2, "launch"));
        assert_eq!(document.payload.get(), r#"{ "to": "ada@example.org" }"#);
    }

    #[test]
    fn every_refusal_names_its_field() {
        for (field, document) in [
            ("document", "{"),
            ("document", "[1]"),
            ("payload", "{}"),
            ("payload/a/1", r#"{"payload":{"a":["x","\u0000"]}}"#),
            ("payload", r#"{"payload":"\ud800"}"#),
            ("key", r#"{"payload":1,"key":""}"#),
            ("key", r#"{"payload":1,"key":7}"#),
            ("key", r#"{"payload":1,"key":"a\nb"}"#),
            ("not_before", r#"{"payload":1,"not_before":"2026-12-01T09:00:00"}"#),
            ("not_before", r#"{"payload":1,"not_before":1796000000}"#),
            ("not_before", r#"{"payload":1,"not_before":"9999-01-01T00:00:00Z"}"#),
            ("expires_at", r#"{"payload":1,"expires_at":"1970-01-01T00:00:00Z"}"#),
            ("expires_at", r#"{"payload":1,"expires_at":"2026-02-30T00:00:00Z"}"#),
            (
                "expires_at",
                r#"{"payload":1,"not_before":"2026-12-02T00:00:00Z","expires_at":"2026-12-01T00:00:00Z"}"#,
            ),
            ("cost", r#"{"payload":1,"cost":0}"#),
            ("cost", r#"{"payload":1,"cost":1001}"#),
            ("cost", r#"{"payload":1,"cost":1.5}"#),
            ("tags", r#"{"payload":1,"tags":{"campaign":7}}"#),
            ("request.path", r#"{"payload":1,"request":{"path":"//evil"}}"#),
            ("request", r#"{"payload":1,"request":{"encoding":"xml"}}"#),
        ] {
            assert_eq!(fault(document), field, "{document}");
        }
    }

    /// failures 68: the same content in another order is the same content.
    #[test]
    fn the_fingerprint_ignores_order_and_blanks() {
        let of = |document: &[u8]| fingerprint(document).unwrap();
        assert_eq!(of(br#"{"a":1,"b":[2]}"#), of(br#"{ "b": [ 2 ], "a": 1 }"#));
        assert_ne!(of(br#"{"a":1}"#), of(br#"{"a":2}"#));
    }

    proptest! {
        #[test]
        fn it_is_total(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Document::parse(&bytes, NOW_MS);
        }
    }
}
