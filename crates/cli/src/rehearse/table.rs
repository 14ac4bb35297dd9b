//! The tables that an operator wants.

use super::Rehearsed;
use crate::print;
use paceline_rehearsal::Figures;

/// Row by row: its name, how it is written, and what it means.
type Row = (&'static str, fn(&Figures) -> String, &'static str);

const ROWS: [Row; 15] = [
    ("attempts", |f| f.attempts.to_string(), "requests at the provider"),
    ("throttled", |f| percent(f.throttled_share), "of those refused as too many"),
    ("holds", |f| f.holds.to_string(), "times it was told to wait and waited"),
    ("accepted", |f| f.accepted.to_string(), "jobs that the provider has"),
    (
        "misfiled",
        |f| f.terminal_misfiled.to_string(),
        "filed as failed, and the provider never said \"not ever\"",
    ),
    ("lost", |f| f.lost.to_string(), "pushed and nowhere"),
    ("left", |f| f.left.to_string(), "still waiting at the end: it did not drain"),
    ("duplicates", |f| f.duplicates.to_string(), "messages delivered twice"),
    ("drain", |f| format!("{:.1} s", f.drain_s), "until the last job's first acceptance"),
    ("physical", |f| format!("{:.1} s", f.physical_s), "what a sender needs that knows everything"),
    ("ratio", |f| format!("{:.2}", f.drain_ratio), "the one over the other"),
    ("utilisation", |f| percent(f.utilisation), "accepted of what the provider would have taken"),
    ("transactional p50", |f| ms(f.transactional_p50_ms), "push to first acceptance"),
    ("transactional p99", |f| ms(f.transactional_p99_ms), ""),
    ("p99 outside holds", |f| ms(f.transactional_p99_outside_holds_ms), "of those that no hold delayed"),
];

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn ms(ms: f64) -> String {
    if ms >= 10_000.0 { format!("{:.1} s", ms / 1_000.0) } else { format!("{ms:.1} ms") }
}

/// Both senders side by side.
pub(super) fn beside(run: &Rehearsed) -> anyhow::Result<()> {
    let rows = ROWS.iter().map(|(name, write, note)| {
        let naive = run.naive.as_ref().map_or_else(|| "–".to_owned(), write);
        vec![(*name).to_owned(), write(&run.ours), naive, (*note).to_owned()]
    });
    print::table(&[run.name.as_str(), "Paceline", "naive", ""], rows.collect());
    Ok(())
}

/// One launch a column.
pub(super) fn medians(launches: &[(&String, Figures, Option<&Figures>)]) -> anyhow::Result<()> {
    let mut header = vec![""];
    for (name, _, naive) in launches {
        header.push(name);
        header.extend(naive.map(|_| "naive, one run"));
    }
    header.push("");
    let rows = ROWS.iter().map(|(name, write, note)| {
        let mut row = vec![(*name).to_owned()];
        for (_, ours, naive) in launches {
            row.push(write(ours));
            row.extend(naive.map(write));
        }
        row.push((*note).to_owned());
        row
    });
    print::table(&header, rows.collect());
    Ok(())
}
