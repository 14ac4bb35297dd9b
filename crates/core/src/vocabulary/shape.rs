//! The shape of a body: which fields it has and of which kind, without what stands in them. Answers nobody has a word
//! for are gathered by it, so that a hundred of one kind are one row and no recipient is in it.

use crate::text;
use serde_json::Value;

/// A shape is a line in a table.
const MAX_BYTES: usize = 200;
const MAX_KEY_BYTES: usize = 40;
const MAX_DEPTH: usize = 4;

/// `{error:{code:number,message:text}}`, `<ErrorResponse>`, `text`, `empty`; of a list, its first element.
pub fn shape(body: &[u8]) -> String {
    let words = match serde_json::from_slice::<Value>(body) {
        Ok(document) => json(&document, 0),
        Err(_) if body.iter().all(u8::is_ascii_whitespace) => "empty".into(),
        Err(_) => element(body).map_or_else(|| "text".into(), |name| format!("<{name}>")),
    };
    text::bounded(words.as_bytes(), MAX_BYTES)
}

fn json(value: &Value, depth: usize) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "flag".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "text".into(),
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => "…".into(),
        Value::Array(items) => {
            format!("[{}]", items.first().map(|item| json(item, depth + 1)).unwrap_or_default())
        }
        Value::Object(fields) => {
            // Each field takes at least four bytes of the line, so more than these are never seen.
            let shown = fields.iter().take(MAX_BYTES / 4);
            let shown = shown.map(|(key, value)| {
                format!("{}:{}", text::bounded(key.as_bytes(), MAX_KEY_BYTES), json(value, depth + 1))
            });
            format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
        }
    }
}

/// The name of the first element of a page, behind its declarations and comments.
fn element(body: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&body[..body.len().min(super::TEXT_BYTES)]).into_owned();
    if !head.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']).starts_with('<') {
        return None;
    }
    let begins = |part: &&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    let name = head.split('<').skip(1).find(begins)?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(name.len());
    Some(name[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shape_tells_fields_and_kinds_and_no_content() {
        let refusal =
            r#"{"error":{"message":"to +49 170 1","code":7,"data":null},"ok":false,"list":[{"a":1},2]}"#;
        assert_eq!(
            shape(refusal.as_bytes()),
            "{error:{code:number,data:null,message:text},list:[{a:number}],ok:flag}"
        );
        assert_eq!(shape(b"<?xml version=\"1.0\"?><!-- x --><ErrorResponse xmlns=\"y\">"), "<ErrorResponse>");
        assert_eq!(shape(b"\n<!DOCTYPE html><html><body>Denied"), "<html>");
        assert_eq!(shape(b"Forbidden: 5 < 6"), "text");
        assert_eq!(shape(b" \r\n"), "empty");
        assert_eq!(shape(b"[[[[[[1]]]]]]"), "[[[[…]]]]");
        assert_eq!(shape(b"[]"), "[]");
    }

    #[test]
    fn it_is_bounded() {
        let fields: Vec<String> = (0..10_000).map(|n| format!("\"k{n}\":{{\"x\":[{n}]}}")).collect();
        assert!(shape(format!("{{{}}}", fields.join(",")).as_bytes()).len() <= MAX_BYTES);
        assert!(shape(format!("<{}", "a".repeat(10_000)).as_bytes()).len() <= MAX_BYTES);
    }

    proptest! {
        #[test]
        fn it_is_total(body in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(shape(&body).len() <= MAX_BYTES);
        }
    }
}
