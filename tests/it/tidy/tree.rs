//! The tree, and what was found in it.

use paceline_tests::binary::root;
use std::fmt::Display;
use std::fs;
use std::path::Path;

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 4] = ["target", ".git", ".paceline", "node_modules"];

/// One text file.
pub(super) struct File {
    /// From the root, with slashes.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The file of that path.
    pub(super) fn named(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), text }
    }
}

/// Every text file of the tree whose path is wanted, in order.
pub(super) fn files(wanted: impl Fn(&str) -> bool) -> Vec<File> {
    let mut files = Vec::new();
    walk(&root(), "", &wanted, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!files.is_empty(), "a rule that looks at nothing holds for nothing");
    files
}

fn walk(folder: &Path, prefix: &str, wanted: &impl Fn(&str) -> bool, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).expect("a folder of the tree can be read").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !SKIPPED.contains(&name.as_str()) => {
                walk(&entry.path(), &format!("{path}/"), wanted, files);
            }
            Ok(kind) if kind.is_file() && wanted(&path) => {
                // What is not text has no lines to look at.
                files.extend(fs::read_to_string(entry.path()).ok().map(|text| File { path, text }));
            }
            _ => {}
        }
    }
}

pub(super) fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

/// What was found, told at once.
#[derive(Default)]
pub(super) struct Findings(Vec<String>);

impl Findings {
    pub(super) fn add(&mut self, file: &File, line: usize, what: impl Display) {
        self.0.push(format!("{}:{line}: {what}", file.path));
    }

    /// Fails where anything was found.
    pub(super) fn none(self, rule: &str) {
        assert!(self.0.is_empty(), "{rule}: {} finding(s)\n  {}", self.0.len(), self.0.join("\n  "));
    }
}
