//! Where a provider puts a value in its answer: the id of a message, its own code.

use super::facts::Facts;
use super::pointer::Pointer;
use crate::text;

/// A message id or a code is a word; more is cut.
const MAX_BYTES: usize = 200;

/// Where a provider puts a value in its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locator {
    /// A place in a JSON body.
    Body(Pointer),
    /// A header, by lower-case name.
    Header(String),
}

impl Locator {
    /// Reads `body:/json/pointer` or `header:name`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("body", pointer)) => Pointer::parse(pointer).map(Self::Body),
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_lowercase())),
            _ => Err("must be body:/json/pointer or header:name".into()),
        }
    }

    /// The first value there, as clean text; a blank one counts as absent.
    pub(super) fn find(&self, facts: &Facts<'_>) -> Option<String> {
        let values = match self {
            Self::Body(pointer) => facts.values(pointer),
            Self::Header(name) => facts.headers(name),
        };
        let mut values = values.iter().flatten().map(|value| value.trim());
        values.find(|value| !value.is_empty()).map(|value| text::bounded(value.as_bytes(), MAX_BYTES))
    }
}

impl std::fmt::Display for Locator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Body(pointer) => write!(f, "body:{pointer}"),
            Self::Header(name) => write!(f, "header:{name}"),
        }
    }
}
