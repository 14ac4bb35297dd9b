//! Keeps the ledger: one short call per event, totals kept as it goes so that a summary costs nothing.

use super::{Ledger, LedgerEntry, LedgerSecond, LedgerSummary};
use std::collections::{HashMap, VecDeque};

/// Beyond so many send ids the sandbox refuses rather than forget one, because a ledger with holes proves
/// nothing. It is some hundred megabytes.
const MAX_ENTRIES: usize = 1_000_000;
/// A day.
const MAX_SECONDS: usize = 86_400;

/// Which line of the book.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line(usize);

/// The ledger while it is written.
#[derive(Debug, Default)]
pub(crate) struct Book {
    summary: LedgerSummary,
    entries: Vec<LedgerEntry>,
    lines: HashMap<String, Line>,
    timeline: VecDeque<LedgerSecond>,
    /// Never starts again, so that no message id is given twice.
    messages: u64,
}

/// "Not ever", as against a matter of time: a refusal that no waiting mends.
fn is_for_good(status: u16) -> bool {
    matches!(status, 400..=499 | 501 | 505) && !matches!(status, 402 | 408 | 421 | 425 | 429)
}

impl Book {
    /// Forgets everything but the count of messages.
    pub(crate) fn clear(&mut self) {
        *self = Self { messages: self.messages, ..Self::default() };
    }

    pub(crate) fn summary(&self) -> LedgerSummary {
        self.summary
    }

    pub(crate) fn snapshot(&self) -> Ledger {
        Ledger {
            summary: self.summary,
            entries: self.entries.clone(),
            timeline: self.timeline.iter().copied().collect(),
        }
    }

    /// At most `limit` entries from the `cursor`th on; entries keep their places, so pages never overlap.
    pub(crate) fn page(&self, cursor: usize, limit: usize) -> &[LedgerEntry] {
        let rest = self.entries.get(cursor..).unwrap_or_default();
        &rest[..rest.len().min(limit)]
    }

    pub(crate) fn delivered(&self, line: Line) -> bool {
        self.entries[line.0].delivered > 0
    }

    /// A request arrived. `None`: the book is full and this send id is not in it.
    pub(crate) fn arrive(
        &mut self,
        send_id: Option<&str>,
        credential: &str,
        payload_key: Option<&str>,
        now_us: u64,
    ) -> Option<Line> {
        let known = send_id.and_then(|send_id| self.lines.get(send_id)).copied();
        let line = match known {
            Some(line) => line,
            None if self.entries.len() < MAX_ENTRIES => self.open(send_id, credential, now_us),
            None => return None,
        };
        self.summary.requests += 1;
        self.second(now_us).arrivals += 1;
        let entry = &mut self.entries[line.0];
        entry.arrivals += 1;
        entry.last_arrived_us = now_us;
        if entry.payload_key.is_none() {
            entry.payload_key = payload_key.map(str::to_owned);
        }
        Some(line)
    }

    fn open(&mut self, send_id: Option<&str>, credential: &str, now_us: u64) -> Line {
        let line = Line(self.entries.len());
        if let Some(send_id) = send_id {
            self.lines.insert(send_id.to_owned(), line);
        }
        self.entries.push(LedgerEntry {
            send_id: send_id.map_or_else(|| format!("none:{}", line.0 + 1), str::to_owned),
            credential: credential.to_owned(),
            payload_key: None,
            message_id: None,
            first_arrived_us: now_us,
            last_arrived_us: now_us,
            first_accepted_us: None,
            arrivals: 0,
            throttled: 0,
            refused: 0,
            refused_for_good: 0,
            delivered: 0,
            repeats_deduplicated: 0,
            unanswered: 0,
        });
        line
    }

    /// A request without a line of its own (its send id is unusable, or the book is full) was refused.
    pub(crate) fn refuse_unlisted(&mut self, now_us: u64) {
        self.summary.requests += 1;
        self.summary.refused += 1;
        self.second(now_us).arrivals += 1;
    }

    pub(crate) fn throttle(&mut self, line: Line, now_us: u64) {
        self.summary.throttled += 1;
        self.entries[line.0].throttled += 1;
        self.second(now_us).throttled += 1;
    }

    /// With this status.
    pub(crate) fn refuse(&mut self, line: Line, status: u16) {
        self.summary.refused += 1;
        let entry = &mut self.entries[line.0];
        entry.refused += 1;
        entry.refused_for_good += u32::from(is_for_good(status));
    }

    pub(crate) fn leave_unanswered(&mut self, line: Line) {
        self.summary.unanswered += 1;
        self.entries[line.0].unanswered += 1;
    }

    /// Delivers the message, unless it is a repeat and those are recognised; answers with its message id.
    pub(crate) fn deliver(&mut self, line: Line, deduplicates: bool, now_us: u64) -> String {
        let entry = &mut self.entries[line.0];
        match &entry.message_id {
            Some(message_id) if deduplicates => {
                entry.repeats_deduplicated += 1;
                self.summary.repeats_deduplicated += 1;
                return message_id.clone();
            }
            Some(_) => self.summary.duplicates += 1,
            None => self.summary.accepted += 1,
        }
        self.messages += 1;
        self.summary.delivered += 1;
        entry.delivered += 1;
        let message_id = format!("msg-{}", self.messages);
        if entry.message_id.is_none() {
            entry.message_id = Some(message_id.clone());
            entry.first_accepted_us = Some(now_us);
            self.second(now_us).accepted += 1;
        }
        message_id
    }

    /// The line of this second. A wall clock that steps back stays in the newest: the timeline is in order.
    fn second(&mut self, now_us: u64) -> &mut LedgerSecond {
        let at_s = now_us / 1_000_000;
        if self.timeline.back().is_none_or(|newest| newest.at_s < at_s) {
            if self.timeline.len() == MAX_SECONDS {
                self.timeline.pop_front();
            }
            self.timeline.push_back(LedgerSecond { at_s, ..LedgerSecond::default() });
        }
        self.timeline.back_mut().expect("a second was pushed if there was none")
    }
}
