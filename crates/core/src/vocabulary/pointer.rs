//! JSON pointers (RFC 6901) in which a step `*` stands for any element of an array or object.

use serde_json::Value;
use std::fmt;

/// A pointer is a line somebody types, not a program.
const MAX_BYTES: usize = 200;
const MAX_STEPS: usize = 16;

/// A place, or several, in a JSON document: `/code`, `/messages/*/status`.
///
/// A key that is really called `*` is found by the same step, among the other elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Any,
    /// A key of an object and, where it is written like one, an index of an array.
    Named(String, Option<usize>),
}

impl Pointer {
    /// Reads a pointer; the error says what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(path) = text.strip_prefix('/') else {
            return Err("must be a JSON pointer that starts with \"/\", as /error/code".into());
        };
        if text.len() > MAX_BYTES {
            return Err(format!("must be at most {MAX_BYTES} bytes"));
        }
        let steps: Vec<Step> = path.split('/').map(step).collect::<Result<_, _>>()?;
        if steps.len() > MAX_STEPS {
            return Err(format!("must have at most {MAX_STEPS} steps"));
        }
        Ok(Self { text: text.into(), steps })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Shows `found` every value at this place, in document order, until it answers true; whether it did. An element
    /// that a `*` stands for and that has nothing at the rest of the path is shown as null: it must not go unseen.
    pub fn any<'a>(&self, document: &'a Value, found: &mut dyn FnMut(&'a Value) -> bool) -> bool {
        walk(&self.steps, document, found)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn step(text: &str) -> Result<Step, String> {
    if text == "*" {
        return Ok(Step::Any);
    }
    let mut name = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        name.push(match (c, rest.clone().next()) {
            ('~', Some('0')) => '~',
            ('~', Some('1')) => '/',
            ('~', _) => return Err("has a ~ that is neither ~0 (for ~) nor ~1 (for /)".into()),
            (c, _) => c,
        });
        if c == '~' {
            rest.next();
        }
    }
    let index = index(&name);
    Ok(Step::Named(name, index))
}

/// RFC 6901 §4: digits without a leading zero.
fn index(name: &str) -> Option<usize> {
    let is_index = name == "0" || !name.starts_with('0') && name.bytes().all(|b| b.is_ascii_digit());
    name.parse().ok().filter(|_| is_index)
}

fn walk<'a>(steps: &[Step], value: &'a Value, found: &mut dyn FnMut(&'a Value) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else { return found(value) };
    match (step, value) {
        (Step::Any, Value::Array(items)) => items.iter().any(|item| element(rest, item, found)),
        (Step::Any, Value::Object(fields)) => fields.values().any(|field| element(rest, field, found)),
        (Step::Named(name, _), Value::Object(fields)) => {
            fields.get(name).is_some_and(|field| walk(rest, field, found))
        }
        (Step::Named(_, Some(index)), Value::Array(items)) => {
            items.get(*index).is_some_and(|item| walk(rest, item, found))
        }
        _ => false,
    }
}

fn element<'a>(steps: &[Step], item: &'a Value, found: &mut dyn FnMut(&'a Value) -> bool) -> bool {
    static NOTHING: Value = Value::Null;
    let mut is_seen = false;
    let is_enough = walk(steps, item, &mut |value| {
        is_seen = true;
        found(value)
    });
    is_enough || !is_seen && found(&NOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn all(pointer: &str, document: &Value) -> Vec<String> {
        let mut all = Vec::new();
        Pointer::parse(pointer).unwrap().any(document, &mut |value| {
            all.push(value.to_string());
            false
        });
        all
    }

    #[test]
    fn a_star_stands_for_any_element() {
        let document =
            json!({ "messages": [{ "status": "0" }, { "status": 1 }, {}], "a/b": { "~": 2, "*": 3 } });
        assert_eq!(all("/messages/*/status", &document), ["\"0\"", "1", "null"]);
        assert_eq!(all("/messages/1/status", &document), ["1"]);
        assert_eq!(all("/*/0/status", &document), ["null", "\"0\""]);
        assert_eq!(all("/a~1b/~0", &document), ["2"]);
        assert_eq!(all("/a~1b/*", &document), ["3", "2"]);
        for nowhere in ["/messages/01/status", "/messages/9", "/messages/status", "/none/*", "/"] {
            assert_eq!(all(nowhere, &document), [""; 0], "{nowhere}");
        }
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        let long = "/a".repeat(101);
        for wrong in ["", "code", "$.code", "/a~", "/a~2b", &long, &"/*".repeat(17)] {
            assert!(Pointer::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c0-9]{0,3}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-c0-2/~*]{0,2}", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Without a star it is what serde_json calls a pointer.
        #[test]
        fn it_agrees_with_rfc_6901(document in documents(), pointer in "(/([a-c0-2]|~0|~1){0,3}){1,4}") {
            let theirs: Vec<String> = document.pointer(&pointer).map(Value::to_string).into_iter().collect();
            prop_assert_eq!(all(&pointer, &document), theirs);
        }

        #[test]
        fn it_is_total(document in documents(), pointer in "\\PC{0,20}|(/[a-c*0-2~]{0,2}){0,5}") {
            if let Ok(parsed) = Pointer::parse(&pointer) {
                prop_assert_eq!(parsed.as_str(), pointer);
                parsed.any(&document, &mut |_| false);
            }
        }
    }
}
