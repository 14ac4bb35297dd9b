//! What a rule asks of the values behind a header or a JSON pointer.

use super::facts::Found;
use super::fields::{Fields, plain, some_of, texts};
use crate::Fault;
use serde_json::Value;

/// Asked of the values found at one place. All that is set must hold; texts, numbers and truth values are compared
/// as text, because providers write the same code both ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predicate {
    /// Some value equals one of these.
    is: Option<Vec<String>>,
    /// Every value equals one of these, no element lacks one, and there is at least one.
    every: Option<Vec<String>>,
    /// Some value equals none of these.
    other_than: Option<Vec<String>>,
    /// Some value contains one of these, whatever the case of ASCII letters.
    contains: Option<Vec<String>>,
    /// There is a value other than null, or there is none.
    exists: Option<bool>,
}

impl Predicate {
    /// Some value equals `wanted`.
    pub fn is(wanted: impl Into<String>) -> Self {
        Self { is: Some(vec![wanted.into()]), ..Self::default() }
    }

    /// A value or a list of them is what some value must equal; a table says something else.
    pub(super) fn read(path: &str, value: &Value) -> Result<Self, Fault> {
        if !value.is_object() {
            let is = scalars(value).map_err(|problem| Fault::new(path, problem))?;
            return Ok(Self { is: Some(is), ..Self::default() });
        }
        let mut fields = Fields::of(path, value)?;
        let read = Self {
            is: fields.optional("is", scalars)?,
            every: fields.optional("every", scalars)?,
            other_than: fields.optional("other_than", scalars)?,
            contains: fields.optional("contains", texts)?.map(lower),
            exists: fields
                .optional("exists", |value| value.as_bool().ok_or("must be true or false".into()))?,
        };
        fields.finish()?;
        let says_no = read.exists == Some(false);
        let says_more = read != Self { exists: read.exists, ..Self::default() };
        match (read.exists, says_more) {
            (None, false) => {
                Err(Fault::new(path, "asks for nothing: is, every, other_than, contains or exists"))
            }
            _ if says_no && says_more => Err(Fault::new(path, "cannot be absent and have a value")),
            _ => Ok(read),
        }
    }

    /// Whether it holds of these values.
    pub(super) fn holds(&self, values: &[Found<'_>], is_whole: bool) -> bool {
        let one_of = |wanted: &[String], value: &str| wanted.iter().any(|wanted| wanted == value);
        let any = |test: &dyn Fn(&str) -> bool| values.iter().filter_map(Found::text).any(test);
        let is_there = values.iter().any(|value| *value != Found::Nothing);
        let every = |wanted: &[String]| {
            is_whole
                && !values.is_empty()
                && values.iter().all(|found| found.text().is_some_and(|value| one_of(wanted, value)))
        };
        self.is.as_ref().is_none_or(|wanted| any(&|value| one_of(wanted, value)))
            && self.every.as_ref().is_none_or(|wanted| every(wanted))
            && self.other_than.as_ref().is_none_or(|wanted| any(&|value| !one_of(wanted, value)))
            && self.contains.as_ref().is_none_or(|wanted| any(&|value| has_one_of(value, wanted)))
            && self.exists.is_none_or(|exists| exists == is_there)
    }
}

/// Texts to look for, in lower case.
pub(super) fn lower(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().map(|text| text.to_ascii_lowercase()).collect()
}

fn has_one_of(value: &str, wanted: &[String]) -> bool {
    let value = value.to_ascii_lowercase();
    wanted.iter().any(|wanted| value.contains(wanted.as_str()))
}

fn scalars(value: &Value) -> Result<Vec<String>, String> {
    some_of(value, |value| match value {
        // TOML has no such number, and what is taught live must be writable to a file.
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            Err("is too large for a number: write it as a text".into())
        }
        value => plain(value).ok_or_else(|| "must be a text, a number, true or false".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(predicate: Value, values: &[&'static str]) -> bool {
        let values: Vec<Found<'_>> = values
            .iter()
            .map(|&value| match value {
                "{}" => Found::Nested,
                "null" => Found::Nothing,
                text => Found::Text(text.into()),
            })
            .collect();
        Predicate::read("at", &predicate).unwrap().holds(&values, true)
    }

    #[test]
    fn one_value_is_enough_unless_every_one_is_asked_for() {
        assert!(holds(json!(1), &["0", "1"]));
        assert!(holds(json!(["a", true]), &["true"]));
        assert!(!holds(json!(1), &[]));
        assert!(holds(json!({ "every": ["0", 5] }), &["0", "5"]));
        for values in [&["0", "1"][..], &[], &["0", "{}"], &["0", "null"], &["null"]] {
            assert!(!holds(json!({ "every": "0" }), values), "{values:?}");
        }
        assert!(holds(json!({ "is": 0, "other_than": "0" }), &["0", "1"]), "some, but not all");
        assert!(!holds(json!({ "is": 0, "other_than": "0" }), &["0"]));
        assert!(holds(json!({ "contains": "Verified SENDER" }), &["not a verified Sender identity"]));
        assert!(holds(json!({ "exists": true }), &["{}"]));
        assert!(holds(json!({ "exists": false }), &[]));
        assert!(holds(json!({ "exists": false }), &["null"]), "null is nothing");
    }

    #[test]
    fn every_is_not_said_of_what_was_not_all_seen() {
        let predicate = Predicate::read("at", &json!({ "every": "0" })).unwrap();
        assert!(!predicate.holds(&[Found::Text("0".into())], false));
    }

    #[test]
    fn a_fault_names_its_field() {
        let fault = |value| Predicate::read("at", &value).unwrap_err().to_string();
        assert_eq!(fault(json!({})), "at: asks for nothing: is, every, other_than, contains or exists");
        assert_eq!(fault(json!({ "evry": 1 })), "at.evry: is not a field here; did you mean every?");
        assert_eq!(fault(json!({ "exists": 1 })), "at.exists: must be true or false");
        assert_eq!(fault(json!({ "exists": false, "is": 1 })), "at: cannot be absent and have a value");
        assert_eq!(fault(json!([])), "at: must name at least one value");
        assert_eq!(fault(json!([null])), "at: must be a text, a number, true or false");
    }
}
