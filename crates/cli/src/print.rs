//! What people and machines read: tables on stdout, errors on stderr, colour only on a terminal.

use comfy_table::{LineStyle, Table, TableStyle};
use std::process::ExitCode;

/// One line on stdout.
#[expect(clippy::print_stdout, reason = "the one place that prints")]
pub(crate) fn line(text: impl std::fmt::Display) {
    println!("{text}");
}

/// JSON on stdout, for machines.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// A note beside the output, on stderr.
#[expect(clippy::print_stderr, reason = "the one place that prints")]
pub(crate) fn note(text: impl std::fmt::Display) {
    eprintln!("{text}");
}

/// Exit 1 with the error and what led to it.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    note(format_args!("paceline: {error:#}"));
    ExitCode::FAILURE
}

/// A line under the header and nothing else: easy on the eye, easy to cut and grep.
const UNDER_HEADER: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A plain table: a header and rows.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table.load_style(UNDER_HEADER);
    if header.iter().any(|column| !column.is_empty()) {
        table.set_header(header.to_vec());
    }
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    line(table);
}

/// `83000` → `1m 23s`.
pub(crate) fn span(ms: u64) -> String {
    let s = ms / 1000;
    match (s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60) {
        (0, 0, 0, 0) => format!("{ms}ms"),
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m {s}s"),
        (0, h, m, _) => format!("{h}h {m}m"),
        (d, h, _, _) => format!("{d}d {h}h"),
    }
}
