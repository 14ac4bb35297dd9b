//! The layers of the configuration, flattened: full name of a setting → value and where it stands.

use super::{ConfigFault, DEFAULTS, Sources};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A setting's value and where it was written.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) value: Scalar,
    pub(super) origin: String,
}

/// What a setting may be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Integer(i64),
    Boolean(bool),
    /// Strings in brackets.
    List(Vec<String>),
    /// A kind no setting has; its word is for the message.
    Other(&'static str),
}

/// All layers, later ones over earlier ones.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) leaves: BTreeMap<String, Leaf>,
    /// Tables named in the operator's own layers, even empty ones: `class.bulk` → where.
    pub(super) named: BTreeMap<String, String>,
    pub(super) faults: Vec<ConfigFault>,
}

impl Layers {
    pub(super) fn new(sources: Sources<'_>) -> Self {
        let mut layers = Self::default();
        layers.add_file("defaults", DEFAULTS);
        layers.named.clear();
        if let Some((name, text)) = sources.file {
            layers.add_file(name, text);
        }
        for (name, value) in sources.environment {
            layers.add_variable(name, value);
        }
        layers
    }

    fn add_file(&mut self, name: &str, text: &str) {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let origin = format!("{name}:{line}");
            self.faults.push(ConfigFault { origin, setting: "toml".into(), problem: error.message().into() });
        }
        self.add_table(name, text, "", table.get_ref());
    }

    fn add_table(&mut self, file: &str, text: &str, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref())
            };
            let origin = format!("{file}:{}", line_of(text, key.span().start));
            match value.get_ref() {
                DeValue::Table(table) => {
                    self.named.insert(path.clone(), origin);
                    self.add_table(file, text, &path, table);
                }
                _ => {
                    self.leaves.insert(path, Leaf { value: scalar(value), origin });
                }
            }
        }
    }

    /// `PACELINE__CLASS__BULK__CONCURRENCY` → `class.bulk.concurrency`.
    fn add_variable(&mut self, name: &str, value: &str) {
        let Some(path) = name.strip_prefix("PACELINE__") else { return };
        let path = path.to_lowercase().replace("__", ".");
        let value = match (value.parse::<i64>(), value) {
            (Ok(integer), _) => Scalar::Integer(integer),
            (_, "true") => Scalar::Boolean(true),
            (_, "false") => Scalar::Boolean(false),
            _ => Scalar::Text(value.to_owned()),
        };
        self.leaves.insert(path, Leaf { value, origin: format!("environment {name}") });
    }
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Scalar {
    match value.get_ref() {
        DeValue::String(text) => Scalar::Text(text.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Scalar::Other("a number that large"), Scalar::Integer),
        DeValue::Boolean(flag) => Scalar::Boolean(*flag),
        DeValue::Array(items) => {
            list(items).map_or(Scalar::Other("a list of anything but strings"), Scalar::List)
        }
        other => Scalar::Other(other.type_str()),
    }
}

fn list(items: &[Spanned<DeValue<'_>>]) -> Option<Vec<String>> {
    items
        .iter()
        .map(|item| match item.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        })
        .collect()
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}
