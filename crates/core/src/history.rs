//! What happened to a job so far: one JSON line per attempt, oldest first, each ending in `\n`.
//!
//! Lines rather than an array, so that a script can append one without decoding the others. Rust keeps the
//! last [`KEPT`] whole; older ones of the trailing hour shrink to their time, which the hourly cap counts.

use crate::text;
use serde::{Deserialize, Serialize};

/// How many attempts a job keeps in full.
pub const KEPT: usize = 20;
const HOUR_MS: u64 = 3_600_000;

/// One end of an attempt, or of a claim that made none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it ended, in ms since the epoch by Redis's clock.
    pub at_ms: u64,
    /// What the provider said: `429`, `timeout`, `connect`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// The outcome's word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Why, where the outcome alone does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The rule of the vocabulary that decided: `http:429`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The wait the remote side asked for, in ms, as it asked (a job may be bounded by its expiry).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// From writing the request to the end, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The provider's id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The head of the answer's body, bounded and clean.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snippet: String,
}

/// The attempts of a job. Lines that cannot be read (a newer version's, a damaged one) are skipped here and
/// stay where they are until the next settle rewrites the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    attempts: Vec<Attempt>,
}

impl History {
    /// Reads lines as stored.
    pub fn parse(lines: &[u8]) -> Self {
        let attempts = lines
            .split(|&b| b == b'\n')
            .filter(|line| !line.is_empty())
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        Self { attempts }
    }

    /// Every attempt that is kept, oldest first.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The latest attempt.
    pub fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// Adds the latest attempt; older ones than the last [`KEPT`] keep their time only, for an hour.
    pub fn push(&mut self, attempt: Attempt) {
        let now_ms = attempt.at_ms;
        self.attempts.push(attempt);
        let old = self.attempts.len().saturating_sub(KEPT);
        for attempt in &mut self.attempts[..old] {
            *attempt = Attempt { at_ms: attempt.at_ms, ..Attempt::default() };
        }
        let mut index = 0;
        self.attempts.retain(|attempt| {
            index += 1;
            index > old || attempt.at_ms + HOUR_MS > now_ms
        });
    }

    /// When a job that may be tried `per_hour` times in any hour may be tried again, in ms from now.
    pub fn hourly_wait_ms(&self, per_hour: usize, now_ms: u64) -> u64 {
        let in_hour: Vec<u64> =
            self.attempts.iter().map(|a| a.at_ms).filter(|&at_ms| at_ms + HOUR_MS > now_ms).collect();
        match in_hour.len().checked_sub(per_hour) {
            Some(surplus) => in_hour[surplus] + HOUR_MS - now_ms,
            None => 0,
        }
    }

    /// The lines to store.
    pub fn to_lines(&self) -> Vec<u8> {
        self.attempts.iter().flat_map(line).collect()
    }

    /// What a receipt keeps: the last attempt without its snippet.
    pub fn to_receipt(&self) -> Vec<u8> {
        self.last().map(|last| line(&Attempt { snippet: String::new(), ..last.clone() })).unwrap_or_default()
    }
}

/// One attempt as its line; every text in it is bounded first.
fn line(attempt: &Attempt) -> Vec<u8> {
    let clean = |text: &str, max| text::bounded(text.as_bytes(), max);
    let bounded = Attempt {
        code: clean(&attempt.code, 40),
        reason: clean(&attempt.reason, 200),
        rule: clean(&attempt.rule, 80),
        message_id: attempt.message_id.as_deref().map(|id| clean(id, 200)),
        snippet: clean(&attempt.snippet, text::SNIPPET_BYTES),
        ..attempt.clone()
    };
    let mut line = serde_json::to_vec(&bounded).expect("an attempt has only texts and numbers");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ms: u64) -> Attempt {
        Attempt { at_ms, code: "429".into(), outcome: "throttled".into(), ..Attempt::default() }
    }

    #[test]
    fn lines_read_back_and_odd_ones_are_skipped() {
        let mut history = History::default();
        history.push(at(5));
        let mut lines = history.to_lines();
        lines.extend_from_slice(b"{\"at_ms\":\"soon\"}\n\xff\xfe\n");
        assert_eq!(History::parse(&lines), history);
    }

    #[test]
    fn only_the_last_twenty_are_whole_and_the_hour_keeps_times() {
        let mut history = History::default();
        (0..100).for_each(|minute| history.push(at(minute * 60_000)));
        let whole = history.attempts().iter().filter(|a| !a.code.is_empty()).count();
        assert_eq!((history.attempts().len(), whole), (60, KEPT));
    }

    #[test]
    fn sixty_tries_an_hour_wait_until_the_oldest_leaves_it() {
        let mut history = History::default();
        (0..59).for_each(|second| history.push(at(1_000 + second)));
        assert_eq!(history.hourly_wait_ms(60, 2_000), 0);
        history.push(at(2_000));
        assert_eq!(history.hourly_wait_ms(60, 2_000), 1_000 + HOUR_MS - 2_000);
    }
}
