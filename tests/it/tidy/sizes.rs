//! STYLE 1a: files that fit on a page, functions that fit on a screen.

use super::rust::Rust;
use super::tree::{File, Findings, files, is_rust};

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_SCRIPT_LINES: usize = 60;
const MAX_LINE: usize = 130;

/// Median and 90th percentile, in lines: the budget, and where the test fails. What lies between is slack, and
/// printed.
const FILES: [(usize, usize); 2] = [(150, 165), (330, 360)];
const FUNCTIONS: [(usize, usize); 2] = [(10, 11), (25, 28)];

impl Findings {
    fn long_file(&mut self, file: &File, most: usize) {
        let lines = file.lines().count();
        if lines > most {
            self.add(file, 1, format_args!("{lines} lines, at most {most}"));
        }
    }

    /// A text cannot be broken without changing it; what stands around it can.
    fn long_lines(&mut self, file: &File, holds_text: impl Fn(usize, &str) -> bool) {
        for (line, text) in file.lines() {
            let characters = text.chars().count();
            if characters > MAX_LINE && !holds_text(line, text) {
                self.add(file, line, format_args!("{characters} characters, at most {MAX_LINE}"));
            }
        }
    }
}

#[test]
fn no_file_no_function_and_no_line_is_too_long() {
    let mut findings = Findings::default();
    for file in files(is_rust) {
        let rust = Rust::read(&file);
        findings.long_file(&file, MAX_FILE_LINES);
        findings.long_lines(&file, |line, _| rust.holds_text(line - 1));
        for function in rust.functions().iter().filter(|function| function.lines > MAX_FUNCTION_LINES) {
            let told =
                format!("{} has {} lines, at most {MAX_FUNCTION_LINES}", function.name, function.lines);
            findings.add(&file, function.line + 1, told);
        }
    }
    findings.none("STYLE 1a");
}

#[test]
fn no_script_is_longer_than_a_screen() {
    let mut findings = Findings::default();
    for file in files(|path| path.ends_with(".lua")) {
        findings.long_file(&file, MAX_SCRIPT_LINES);
        findings.long_lines(&file, |_, text| text.contains('\''));
    }
    findings.none("STYLE 1a");
}

#[test]
fn the_usual_file_and_the_usual_function_are_short() {
    let is_source = |path: &str| is_rust(path) && path.starts_with("crates/") && path.contains("/src/");
    let sources: Vec<Rust> = files(is_source).iter().map(Rust::read).collect();
    let files = sources.iter().map(Rust::shipped_lines).filter(|&lines| lines > 0);
    let functions = sources.iter().flat_map(|rust| {
        let shipped = rust.functions().into_iter().filter(|function| !rust.is_test(function.line));
        shipped.map(|function| function.lines)
    });
    within("files", files.collect(), FILES);
    within("functions", functions.collect(), FUNCTIONS);
}

#[expect(clippy::print_stdout, reason = "how much slack is left is worth a look before it is gone")]
fn within(what: &str, mut lengths: Vec<usize>, budgets: [(usize, usize); 2]) {
    lengths.sort_unstable();
    let [median, p90] = [lengths[lengths.len() / 2], lengths[lengths.len() * 9 / 10]];
    let told = format!("{what}: median {median} of {}, p90 {p90} of {} lines", budgets[0].0, budgets[1].0);
    println!("{told}");
    assert!(median <= budgets[0].1 && p90 <= budgets[1].1, "{told}");
}
