//! A table of a rule, read field by field: every fault names its field, and no field is left unread.

use crate::Fault;
use serde_json::{Map, Value};

/// The fields of one table that are still to be read.
pub(super) struct Fields {
    path: String,
    rest: Map<String, Value>,
    asked: Vec<&'static str>,
}

impl Fields {
    /// The table at `path`.
    pub(super) fn of(path: &str, value: &Value) -> Result<Self, Fault> {
        match value {
            Value::Object(fields) => Ok(Self { path: path.into(), rest: fields.clone(), asked: Vec::new() }),
            _ => Err(Fault::new(path, "must be a table")),
        }
    }

    /// The path of a field of this table.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    /// The value of a field, with its path.
    pub(super) fn take(&mut self, key: &'static str) -> Option<(String, Value)> {
        self.asked.push(key);
        let value = self.rest.remove(key)?;
        Some((self.path(key), value))
    }

    /// A field that may be left out; `read` says what is wrong with its value.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, Fault> {
        let Some((path, value)) = self.take(key) else { return Ok(None) };
        read(&value).map(Some).map_err(|problem| Fault::new(path, problem))
    }

    /// A field that must be there.
    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<T, Fault> {
        self.optional(key, read)?.ok_or_else(|| Fault::new(self.path(key), "is missing"))
    }

    /// Refuses what nobody asked for: a misspelt condition must not become a rule without it.
    pub(super) fn finish(self) -> Result<(), Fault> {
        let Some(unknown) = self.rest.keys().next() else { return Ok(()) };
        let nearest = self
            .asked
            .iter()
            .max_by(|a, b| strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown)));
        let problem = match nearest.filter(|near| strsim::jaro_winkler(near, unknown) > 0.7) {
            Some(near) => format!("is not a field here; did you mean {near}?"),
            None => format!("is not a field here; there are {}", self.asked.join(", ")),
        };
        Err(Fault::new(self.path(unknown), problem))
    }
}

/// A text that is not blank.
pub(super) fn text(value: &Value) -> Result<String, String> {
    let text = value.as_str().filter(|text| !text.trim().is_empty());
    text.map(str::to_owned).ok_or_else(|| "must be a text that is not blank".into())
}

/// One text, or a list of them with at least one.
pub(super) fn texts(value: &Value) -> Result<Vec<String>, String> {
    some_of(value, text)
}

/// One value, or a list of them with at least one.
pub(super) fn some_of<T>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    match value {
        Value::Array(items) if items.is_empty() => Err("must name at least one value".into()),
        Value::Array(items) => items.iter().map(read).collect(),
        one => Ok(vec![read(one)?]),
    }
}

/// A text, number or truth value as text: providers write the same code both ways.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
