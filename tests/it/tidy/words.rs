//! What must not be left in the tree. Needles are put together here, so that this file does not find itself.

use super::rust::Rust;
use super::tree::{File, Findings, files, is_rust};

/// Written by tools, or by lawyers.
const NOT_OURS: [&str; 2] = ["Cargo.lock", "LICENSE-APACHE"];

fn ours() -> Vec<File> {
    files(|path| !NOT_OURS.contains(&path))
}

fn needles(halves: &[[&str; 2]]) -> Vec<String> {
    halves.iter().map(|halves| halves.concat()).collect()
}

fn find(needles: &[String], rule: &str) {
    let mut findings = Findings::default();
    for file in ours() {
        for (line, text) in file.lines() {
            for needle in needles.iter().filter(|needle| text.contains(*needle)) {
                findings.add(&file, line, needle);
            }
        }
    }
    findings.none(rule);
}

#[test]
fn nothing_unfinished_is_left() {
    let marks =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"], ["todo", "!("], ["unimplemented", "!("], ["dbg", "!("]];
    find(&needles(&marks), "finish it, or say in the changelog that it is missing");
}

#[test]
fn no_test_is_switched_off() {
    find(&needles(&[["#[ign", "ore"], ["cfg(an", "y())"]]), "a test that does not run proves nothing");
}

#[test]
fn no_path_of_one_machine_is_in_the_tree() {
    find(
        &needles(&[["/wo", "rk/"], ["/ro", "ot/"], ["/Use", "rs/"], ["/ho", "me/"]]),
        "it exists on one machine only",
    );
}

/// Whoever builds with a mirror must not find another host in our files; lists of tools name theirs themselves.
#[test]
fn no_package_registry_is_named_by_host() {
    let hosts =
        [["crates", ".io"], ["pypi", ".org"], ["pythonhosted", "."], ["npmjs", "."], ["debian", ".org"]];
    find(&needles(&hosts), "name the package, not the host");
}

/// `expect("why it cannot fail")` says in the code, and in the log, what `unwrap` keeps to itself.
#[test]
fn only_tests_unwrap() {
    let mut findings = Findings::default();
    for file in files(is_rust) {
        let rust = Rust::read(&file);
        for (line, code) in rust.code.iter().enumerate().filter(|(line, _)| !rust.is_test(*line)) {
            if code.contains(".unwrap()") || code.contains(".unwrap_err()") {
                findings.add(&file, line + 1, code.trim());
            }
        }
    }
    findings.none("STYLE 1a");
}
