//! `[worker]`

use super::*;

pub(super) fn read(reader: &mut Reader) -> Option<WorkerConfig> {
    let section = Section::fixed("worker");
    let grace_ms = reader.required(&section, "grace_ms", |value| integer(value, 0, 3_600_000));
    let lease_margin_ms = reader.required(&section, "lease_margin_ms", |value| integer(value, 500, 600_000));
    let poll_ms = reader.required(&section, "poll_ms", |value| integer(value, 10, 60_000));
    let journal = reader.required(&section, "journal", text);
    let listen = reader.optional(&section, "listen", |value| {
        text(value)?.parse().map_err(|_| "must be an address and port like 127.0.0.1:8701".to_owned())
    });
    Some(WorkerConfig {
        grace_ms: grace_ms?,
        lease_margin_ms: lease_margin_ms?,
        poll_ms: poll_ms?,
        journal: journal.filter(|folder| !folder.is_empty()),
        listen,
    })
}
