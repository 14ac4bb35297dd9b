//! One movement is one Lua file, one method of the store, one registered script: the same name three times.

use super::rust::Rust;
use super::tree::{File, Findings, files};
use std::collections::{BTreeMap, BTreeSet};

/// After what it moves, every script says these, in this order.
const CONTRACT: [&str; 4] = ["Refuses: ", "ARGV: ", "Answers: ", "Called by: "];

fn scripts() -> Vec<File> {
    files(|path| path.starts_with("lua/") && path != "lua/prelude.lua" && !path.starts_with("lua/part/"))
}

fn stem(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".lua").to_owned()
}

/// Name → parts, of `SETTLE "settle": Frees ["record" "find"];`.
fn registered() -> BTreeMap<String, Vec<String>> {
    let file = File::named("crates/store/src/scripts.rs");
    let rust = Rust::read(&file);
    let lines = rust.item("scripts! {");
    let mut scripts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let mut texts = rust.texts.iter().filter(|(begin, _)| *begin == line).map(|(_, text)| text.clone());
        if let Some(name) = texts.next() {
            scripts.insert(name, texts.collect());
        }
    }
    scripts
}

#[test]
fn every_movement_is_a_script_and_a_method_and_registered() {
    let in_files: BTreeSet<String> = scripts().iter().map(|file| stem(&file.path)).collect();
    let rust = Rust::read(&File::named("crates/store/src/movement.rs"));
    let lines = rust.item("pub trait Store");
    let methods = rust.functions().into_iter().filter(|function| lines.contains(&function.line));
    let in_trait: BTreeSet<String> = methods.map(|function| function.name).collect();
    let in_registry: BTreeSet<String> = registered().into_keys().collect();
    assert_eq!(in_files, in_trait, "lua/*.lua against the methods of trait Store");
    assert_eq!(in_files, in_registry, "lua/*.lua against crates/store/src/scripts.rs");
}

/// The table of ARCHITECTURE: each script's name in backticks, in the first column.
#[test]
fn every_script_is_in_the_table_of_the_architecture() {
    let file = File::named("ARCHITECTURE.md");
    let table =
        file.text.split("\n## ").find(|section| section.starts_with("Scripts")).expect("it has that section");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let first_columns = rows.filter_map(|row| row.split('|').nth(1));
    let told: BTreeSet<String> =
        first_columns.flat_map(|column| column.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    let in_files: BTreeSet<String> = scripts().iter().map(|file| stem(&file.path)).collect();
    assert_eq!(told, in_files, "ARCHITECTURE.md against lua/*.lua");
}

#[test]
fn every_part_is_used_and_every_used_part_exists() {
    let exist: BTreeSet<String> =
        files(|path| path.starts_with("lua/part/")).iter().map(|file| stem(&file.path)).collect();
    let used: BTreeSet<String> = registered().into_values().flatten().collect();
    assert_eq!(exist, used, "lua/part/*.lua against what scripts name");
}

#[test]
fn every_script_opens_with_its_contract() {
    let mut findings = Findings::default();
    for file in scripts() {
        let head: Vec<&str> = file.text.lines().map_while(|line| line.strip_prefix("-- ")).collect();
        let mut wanted = CONTRACT.iter().peekable();
        for (index, line) in head.iter().enumerate() {
            if wanted.next_if(|&&word| line.starts_with(word)).is_some() {
                continue;
            }
            if let Some(word) = CONTRACT.iter().find(|&&word| line.starts_with(word)) {
                findings.add(&file, index + 1, format_args!("{word}stands out of order"));
            }
        }
        if let Some(word) = wanted.next() {
            findings.add(&file, 1, format_args!("its contract lacks {word}"));
        }
        let moves = head.first().is_some_and(|line| !CONTRACT.iter().any(|word| line.starts_with(word)));
        if !moves {
            findings.add(&file, 1, "the first line must say what it moves");
        }
    }
    for file in files(|path| path == "lua/prelude.lua" || path.starts_with("lua/part/")) {
        if !file.text.starts_with("-- ") {
            findings.add(&file, 1, "a shared part opens by saying what it is for");
        }
    }
    findings.none("STYLE 4");
}
