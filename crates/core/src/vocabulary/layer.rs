//! Layers of rules: the operator's live ones, the operator's file, a vendor's preset. First match wins.

use super::facts::Facts;
use super::rule::Rule;
use crate::Fault;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// A file of rules is written by people; what is larger was meant for something else.
const MAX_RULES: usize = 1_000;

/// Where a layer comes from, in the order they are asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The operator's live rules.
    Operator,
    /// The operator's file.
    File,
    /// A vendor's preset, by name.
    Preset(String),
}

/// As it begins the name of a rule that fired: `operator`, `file`, `preset:sendgrid`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("operator"),
            Self::File => f.write_str("file"),
            Self::Preset(name) => write!(f, "preset:{name}"),
        }
    }
}

/// Rules of one origin, in the order they are asked; no two share a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    origin: Origin,
    rules: Vec<Rule>,
}

impl Layer {
    /// A layer of rules that are already read.
    pub fn new(origin: Origin, rules: Vec<Rule>) -> Result<Self, Fault> {
        if rules.len() > MAX_RULES {
            return Err(Fault::new(
                "rule",
                format!("must be at most {MAX_RULES} rules, not {}", rules.len()),
            ));
        }
        let mut names = BTreeSet::new();
        for (index, rule) in rules.iter().enumerate() {
            if !names.insert(rule.name()) {
                let problem = format!("is taken: another rule of this layer is called {:?}", rule.name());
                return Err(Fault::new(format!("rule[{index}].name"), problem));
            }
        }
        Ok(Self { origin, rules })
    }

    /// Reads TOML: `[[rule]]`, any number of times, and nothing else.
    pub fn from_toml(origin: Origin, text: &str) -> Result<Self, Fault> {
        let document: Value = toml::from_str(text).map_err(|error| {
            let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
            Fault::new("toml", format!("line {}: {}", before.matches('\n').count() + 1, error.message()))
        })?;
        Self::read(origin, &document)
    }

    /// Reads JSON: a list of rules, or `{"rule": […]}`.
    pub fn from_json(origin: Origin, text: &str) -> Result<Self, Fault> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| Fault::new("json", error.to_string()))?;
        Self::read(origin, &document)
    }

    fn read(origin: Origin, document: &Value) -> Result<Self, Fault> {
        let list = match document {
            Value::Object(fields) => {
                if let Some(unknown) = fields.keys().find(|key| *key != "rule") {
                    return Err(Fault::new(unknown, "is not a field here; there is rule"));
                }
                fields.get("rule")
            }
            other => Some(other),
        };
        let rules = match list {
            None => Vec::new(),
            Some(Value::Array(rules)) => {
                let read = |(index, rule)| Rule::read(&format!("rule[{index}]"), rule);
                rules.iter().enumerate().map(read).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(Fault::new("rule", "must be a list of tables")),
        };
        Self::new(origin, rules)
    }

    /// The layer as TOML that [`Self::from_toml`] reads: what an operator taught live, to be kept in a file.
    pub fn to_toml(&self) -> String {
        let documents: Vec<&Value> = self.rules.iter().map(Rule::document).collect();
        toml::to_string(&json!({ "rule": documents }))
            .expect("a rule was read, so it holds texts, numbers, truth values, lists and tables only")
    }

    /// Where it comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its rules, in the order they are asked.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn first(&self, facts: &Facts<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.knows(facts))
    }
}
