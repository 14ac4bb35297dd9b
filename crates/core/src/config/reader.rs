//! Asks the layers for settings, remembers what was asked, and gathers faults instead of stopping at one.

use super::layers::{Layers, Leaf, Scalar};
use super::{ConfigFault, Sources};
use crate::Name;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Reader {
    layers: Layers,
    /// Patterns of every setting asked for: `class.*.concurrency`.
    asked: BTreeSet<String>,
    /// Full names of the settings that exist and were asked for.
    known: BTreeSet<String>,
}

/// One table of the configuration: `redis`, or `class.bulk` with its fallback `defaults.class`.
#[derive(Debug, Clone)]
pub(super) struct Section {
    path: String,
    pattern: String,
    fallback: Option<String>,
}

impl Section {
    pub(super) fn fixed(path: &str) -> Self {
        Self { path: path.into(), pattern: path.into(), fallback: None }
    }

    pub(super) fn named(kind: &str, name: &Name) -> Self {
        Self {
            path: format!("{kind}.{name}"),
            pattern: format!("{kind}.*"),
            fallback: Some(format!("defaults.{kind}")),
        }
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

impl Reader {
    pub(super) fn new(sources: Sources<'_>) -> Self {
        Self { layers: Layers::new(sources), asked: BTreeSet::new(), known: BTreeSet::new() }
    }

    pub(super) fn asked(&self) -> &BTreeSet<String> {
        &self.asked
    }

    /// The names under a kind of table: those the operator wrote and those that ship.
    pub(super) fn names(&mut self, kind: &str) -> Vec<Name> {
        let prefix = format!("{kind}.");
        let paths =
            self.layers.leaves.iter().map(|(path, leaf)| (path, &leaf.origin)).chain(&self.layers.named);
        let words: BTreeMap<String, String> = paths
            .filter_map(|(path, origin)| {
                let word = path.strip_prefix(&prefix)?.split('.').next()?;
                Some((word.to_owned(), origin.clone()))
            })
            .collect();
        let mut names = Vec::new();
        for (word, origin) in words {
            match Name::new(&word) {
                Ok(name) => names.push(name),
                Err(fault) => {
                    self.known.extend(
                        self.layers
                            .leaves
                            .keys()
                            .filter(|path| path.starts_with(&format!("{prefix}{word}.")))
                            .cloned(),
                    );
                    self.fault_at(origin, format!("{kind}.{word}"), fault.problem);
                }
            }
        }
        names
    }

    /// The operator wrote this table, as against it being there by default only.
    pub(super) fn is_named(&self, kind: &str, name: &Name) -> bool {
        self.layers.named.contains_key(&format!("{kind}.{name}"))
    }

    fn leaf(&mut self, section: &Section, key: &str) -> Option<(String, Leaf)> {
        self.asked.insert(join(&section.pattern, key));
        let mut paths = vec![join(&section.path, key)];
        if let Some(fallback) = &section.fallback {
            self.asked.insert(join(fallback, key));
            paths.push(join(fallback, key));
        }
        self.known.extend(paths.iter().cloned());
        paths.into_iter().find_map(|path| Some((path.clone(), self.layers.leaves.get(&path)?.clone())))
    }

    /// A setting that may be left out.
    pub(super) fn optional<T>(
        &mut self,
        section: &Section,
        key: &str,
        read: impl Fn(&Scalar) -> Result<T, String>,
    ) -> Option<T> {
        let (path, leaf) = self.leaf(section, key)?;
        match read(&leaf.value) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.fault_at(leaf.origin, path, problem);
                None
            }
        }
    }

    /// A setting that must be there, by default or by the operator.
    pub(super) fn required<T>(
        &mut self,
        section: &Section,
        key: &str,
        read: impl Fn(&Scalar) -> Result<T, String>,
    ) -> Option<T> {
        if self.leaf(section, key).is_none() {
            self.fault(section, key, "is missing");
        }
        self.optional(section, key, read)
    }

    /// Every setting below a prefix, as names and texts: `headers.x-a = "1"`.
    pub(super) fn texts(&mut self, section: &Section, key: &str) -> BTreeMap<String, String> {
        self.asked.insert(format!("{}.*", join(&section.pattern, key)));
        let prefix = format!("{}.", join(&section.path, key));
        let below: Vec<(String, Leaf)> = self
            .layers
            .leaves
            .range(prefix.clone()..)
            .take_while(|(path, _)| path.starts_with(&prefix))
            .map(|(path, leaf)| (path.clone(), leaf.clone()))
            .collect();
        let mut texts = BTreeMap::new();
        for (path, leaf) in below {
            self.known.insert(path.clone());
            match leaf.value {
                Scalar::Text(text) => {
                    texts.insert(path[prefix.len()..].to_owned(), text);
                }
                _ => self.fault_at(leaf.origin, path, "must be a string".into()),
            }
        }
        texts
    }

    /// A fault of a setting, wherever it stands.
    pub(super) fn fault(&mut self, section: &Section, key: &str, problem: impl Into<String>) {
        let setting = join(&section.path, key);
        let origin = match self.leaf(section, key) {
            Some((_, leaf)) => leaf.origin,
            None => self.layers.named.get(&section.path).cloned().unwrap_or_else(|| "defaults".into()),
        };
        self.fault_at(origin, setting, problem.into());
    }

    fn fault_at(&mut self, origin: String, setting: String, problem: String) {
        let fault = ConfigFault { origin, setting, problem };
        if !self.layers.faults.contains(&fault) {
            self.layers.faults.push(fault);
        }
    }

    /// What was read, unless something was at fault or nobody asked for a setting that was written.
    pub(super) fn finish<T>(mut self, read: Option<T>) -> Result<T, Vec<ConfigFault>> {
        // A fallback nobody falls back to (no [account.*] at all) is a setting all the same.
        self.known.extend(super::settings().into_iter().filter(|path| path.starts_with("defaults.")));
        let unknown: Vec<(String, String)> = self
            .layers
            .leaves
            .iter()
            .filter(|(path, _)| !self.known.contains(*path))
            .map(|(path, leaf)| (path.clone(), leaf.origin.clone()))
            .collect();
        for (path, origin) in unknown {
            let problem = match self.nearest(&path) {
                Some(near) => format!("is not a setting; did you mean {near}?"),
                None => "is not a setting".into(),
            };
            self.fault_at(origin, path, problem);
        }
        match read {
            Some(value) if self.layers.faults.is_empty() => Ok(value),
            _ => Err(self.layers.faults),
        }
    }

    /// The known setting that is spelled most alike.
    fn nearest(&self, path: &str) -> Option<String> {
        let known = self.known.iter().map(String::as_str);
        let (near, likeness) = known
            .map(|known| (known, strsim::jaro_winkler(known, path)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        (likeness > 0.85).then(|| near.to_owned())
    }
}
