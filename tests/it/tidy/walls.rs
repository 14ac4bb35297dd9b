//! DESIGN 3 and 8: who may use whom, one file that spells keys, one folder that holds Lua.

use super::rust::Rust;
use super::tree::{Findings, files, is_rust};
use toml::{Table, Value};

/// Each crate and the crates of ours that it may use.
const ARROWS: [(&str, &[&str]); 7] = [
    ("core", &[]),
    ("store", &["core"]),
    ("transport", &["core"]),
    ("rehearsal", &["core"]),
    ("worker", &["core", "store"]),
    ("admin", &["core", "store"]),
    ("cli", &["core", "store", "transport", "rehearsal", "worker", "admin"]),
];

/// What only these may use: the heart stays pure, Redis is behind one door, only the binary boxes errors.
const ONLY: [(&str, &[&str]); 13] = [
    ("redis", &["store"]),
    ("anyhow", &["cli"]),
    ("clap", &["cli"]),
    ("reqwest", &["transport", "cli"]),
    ("rustls", &["transport", "cli"]),
    ("hyper", &["transport", "rehearsal"]),
    ("hyper-util", &["rehearsal"]),
    ("axum", &["admin", "rehearsal"]),
    ("tower", &["admin", "rehearsal"]),
    ("tower-http", &["admin"]),
    ("metrics-exporter-prometheus", &["admin", "cli"]),
    ("tokio", &["store", "transport", "rehearsal", "worker", "admin", "cli"]),
    ("rand", &["store", "transport", "rehearsal", "worker", "admin", "cli"]),
];

/// The index words that make a text a key, and the fields that no other word has.
const KEY_MARKS: [&str; 18] = [
    ":queued",
    ":pending",
    ":in_flight",
    ":submitted",
    ":failed",
    ":deferred",
    ":unconfirmed",
    ":expired",
    ":cancelled",
    ":job:",
    ":body:",
    ":claimed:",
    ":minute:",
    ":budget:",
    ":wake",
    ":deployment",
    "pending_since",
    ":{_}",
];

/// Lua outside lua/, each with its reason.
const OTHER_LUA: [(&str, &str); 1] =
    [("crates/cli/src/bench.rs", "the trivial script that the bench compares itself with is no movement")];

fn is_source(path: &str) -> bool {
    is_rust(path) && path.starts_with("crates/")
}

/// The names in `[dependencies]`, `[build-dependencies]` and those of single targets; not those of tests.
fn dependencies(manifest: &Table) -> Vec<String> {
    let mut names = Vec::new();
    for (name, value) in manifest {
        match (name.as_str(), value) {
            ("dependencies" | "build-dependencies", Value::Table(table)) => {
                names.extend(table.keys().cloned());
            }
            ("target", Value::Table(targets)) => {
                let tables = targets.values().filter_map(Value::as_table);
                names.extend(tables.flat_map(dependencies));
            }
            _ => {}
        }
    }
    names
}

#[test]
fn no_crate_uses_another_than_it_may() {
    let mut findings = Findings::default();
    for file in files(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml")) {
        let name = file.path.split('/').nth(1).unwrap_or_default();
        let Some((_, may_use)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            findings.add(&file, 1, "DESIGN 3 has no such crate; give it its arrows here");
            continue;
        };
        let manifest: Table = file.text.parse().expect("cargo reads it too");
        for dependency in dependencies(&manifest) {
            let line =
                file.lines().find(|(_, text)| text.starts_with(&dependency)).map_or(1, |(line, _)| line);
            match dependency.strip_prefix("paceline-") {
                Some(ours) if !may_use.contains(&ours) => {
                    findings.add(&file, line, format_args!("{name} may not use {ours}"));
                }
                Some(_) => {}
                None => {
                    let only = ONLY.iter().find(|(known, _)| *known == dependency);
                    if let Some((_, users)) = only.filter(|(_, users)| !users.contains(&name)) {
                        let told = format!("{name} may not use {dependency}; only {} may", users.join(", "));
                        findings.add(&file, line, told);
                    }
                }
            }
        }
    }
    findings.none("DESIGN 3");
}

/// One lint table for every crate; a crate without it escapes all of them.
#[test]
fn every_crate_has_the_lints_of_the_workspace() {
    let mut findings = Findings::default();
    for file in files(|path| path.ends_with("/Cargo.toml")) {
        if !file.text.contains("[lints]\nworkspace = true") {
            findings.add(&file, 1, "lacks [lints] workspace = true");
        }
    }
    findings.none("Cargo.toml");
}

/// The manifests say what a crate may see; these lists say what core may not call, and clippy reads them.
#[test]
fn core_may_not_fetch_time_chance_or_files() {
    let mut findings = Findings::default();
    for file in files(|path| path == "crates/core/clippy.toml") {
        for banned in ["Instant::now", "SystemTime::now", "Timestamp::now", "env::var", "fs::read_to_string"]
        {
            if !file.text.contains(banned) {
                findings.add(&file, 1, format_args!("does not ban {banned}"));
            }
        }
    }
    findings.none("DESIGN 3");
}

/// `{}:{{{}}}:…` and `:{{bulk}}` spell a hash tag; JSON (`:{{\"a\"`) and arguments (`{file}:{line}`) do not.
fn is_key(text: &str) -> bool {
    let spells_tag = |at: usize| {
        text[at + 3..]
            .chars()
            .next()
            .is_none_or(|next| next == '{' || next == '_' || next.is_ascii_lowercase())
    };
    KEY_MARKS.iter().any(|mark| text.contains(mark))
        || text.match_indices(":{{").any(|(at, _)| spells_tag(at))
}

#[test]
fn keys_are_spelled_in_one_file() {
    let mut findings = Findings::default();
    for file in files(|path| is_source(path) && path != "crates/store/src/keys.rs") {
        let rust = Rust::read(&file);
        for (line, text) in rust.texts.iter().filter(|(line, text)| !rust.is_test(*line) && is_key(text)) {
            findings.add(
                &file,
                line + 1,
                format_args!("{text:?} looks like a key; spell it in store/src/keys.rs"),
            );
        }
    }
    findings.none("DESIGN 8");
}

#[test]
fn what_looks_like_a_key_is_told_from_what_does_not() {
    for key in ["{}:{{{}}}:{}:{what}", "p:{{bulk}}:x", "{}:{{_}}:deployment", "x:queued", "pending_since"] {
        assert!(is_key(key), "{key}");
    }
    for other in ["{file}:{line}", r#"{{\"a\":{{\"b\":1}}}}"#, "welcome:42", "job:{index}", "hold:pause"] {
        assert!(!is_key(other), "{other}");
    }
}

/// A script is written against KEYS and ARGV: a key in quotes would be one that nobody declared.
#[test]
fn no_script_spells_a_key() {
    let mut findings = Findings::default();
    for file in files(|path| path.starts_with("lua/")) {
        for (line, text) in file.lines() {
            let code = text.split("--").next().unwrap_or_default();
            let calls = code.split("call(").skip(1);
            let spelled = calls.filter(|call| {
                let key = call.split_once(',').map_or("", |(_, rest)| rest.trim_start());
                key.starts_with(['\'', '"'])
            });
            if spelled.count() > 0 || code.contains(":{") || code.contains("pcall") {
                findings.add(&file, line, text.trim());
            }
        }
    }
    findings.none("STYLE 4");
}

#[test]
fn lua_lives_in_its_folder() {
    let mut findings = Findings::default();
    let scripts = files(|path| path.ends_with(".lua"));
    for file in scripts.into_iter().filter(|file| !file.path.starts_with("lua/")) {
        findings.add(&file, 1, "a script belongs in lua/");
    }
    for file in files(is_source) {
        let is_allowed = OTHER_LUA.iter().any(|(path, _)| *path == file.path);
        let rust = Rust::read(&file);
        let texts = rust.texts.iter().filter(|(line, _)| !rust.is_test(*line));
        for (line, _) in texts.filter(|(_, text)| text.contains("redis.call(") && !is_allowed) {
            findings.add(&file, line + 1, "Lua in Rust: make it a file in lua/");
        }
    }
    findings.none("DESIGN 3");
}
