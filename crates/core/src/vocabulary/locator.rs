//! Where a provider puts a value in its answer: the id of a message, its own code.

use super::facts::{Facts, Found};
use super::pointer::Pointer;
use crate::text;

/// A message id or a code is a word; more is cut.
const MAX_BYTES: usize = 200;
/// So many different codes are told of one answer.
const MOST_VALUES: usize = 4;

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
        let mut first = None;
        self.each(facts, |text| {
            first.get_or_insert_with(|| text::bounded(text.as_bytes(), MAX_BYTES));
        });
        first
    }

    /// The different values there, the first few, as one word: `0+1`.
    pub(super) fn find_all(&self, facts: &Facts<'_>, max_bytes: usize) -> Option<String> {
        let mut all: Vec<String> = Vec::new();
        self.each(facts, |text| {
            if all.len() < MOST_VALUES && !all.iter().any(|known| known == text) {
                all.push(text.to_owned());
            }
        });
        (!all.is_empty()).then(|| text::bounded(all.join("+").as_bytes(), max_bytes))
    }

    fn each(&self, facts: &Facts<'_>, mut see: impl FnMut(&str)) {
        let values = match self {
            Self::Body(pointer) => facts.values(pointer),
            Self::Header(name) => facts.headers(name),
        };
        let texts = values.iter().filter_map(Found::text).map(str::trim);
        texts.filter(|text| !text.is_empty()).for_each(&mut see);
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
