//! A remote side with moods, and the ledger of what it delivered.

use crate::dice::Dice;
use paceline_core::Answer;
use paceline_core::answer::HttpAnswer;
use paceline_core::backoff::Backoff;
use paceline_core::policy::{OnAmbiguous, Policy, Trips};
use std::collections::HashMap;

/// What provider and class have agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terms {
    Deduplicates,
    Asks,
    Repeats,
    /// Deduplicates, and Redis loses up to its last second now and then.
    LosesSeconds,
}

/// How long the provider recognises a send id.
pub(crate) const DEDUP_WINDOW_MS: u64 = 600_000;

impl Terms {
    pub(crate) fn deduplicates(self) -> bool {
        matches!(self, Self::Deduplicates | Self::LosesSeconds)
    }

    pub(crate) fn may_double(self) -> bool {
        self == Self::Repeats
    }

    pub(crate) fn policy(self) -> Policy {
        Policy {
            max_spent: 6,
            max_unknown: 2,
            max_lapses: 3,
            solo_lapses: 2,
            throttle_horizon_ms: 300_000,
            tries_per_hour: 60,
            backoff: Backoff::new(100, 5_000).expect("good times"),
            on_ambiguous: if self == Self::Repeats { OnAmbiguous::Retry } else { OnAmbiguous::Ask },
            dedup_window_ms: self.deduplicates().then_some(DEDUP_WINDOW_MS),
            trips: Trips::default(),
        }
    }
}

/// What the ledger says of one key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entry {
    pub(crate) delivered: u64,
    /// "Not ever", said aloud: 422 or 401.
    pub(crate) refused: u64,
    /// Ends that may count as spent: everything but acceptances, throttles and refusals.
    pub(crate) unlucky: u64,
}

pub(crate) struct Provider {
    terms: Terms,
    seen: HashMap<String, u64>,
    pub(crate) ledger: HashMap<String, Entry>,
    /// Nothing goes wrong any more.
    pub(crate) is_well: bool,
}

fn http(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Answer::Http(HttpAnswer { status, headers, body: body.into(), body_truncated: false })
}

fn unanswered(phase: &'static str) -> Answer {
    Answer::Unanswered { phase, error: "simulated".into() }
}

impl Provider {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms, seen: HashMap::new(), ledger: HashMap::new(), is_well: false }
    }

    pub(crate) fn entry(&self, key: &str) -> Entry {
        self.ledger.get(key).copied().unwrap_or_default()
    }

    /// Keys that end so are addresses that do not exist: refused each time.
    pub(crate) fn is_bad(key: &str) -> bool {
        key.ends_with('7')
    }

    pub(crate) fn hear(&mut self, key: &str, send_id: &str, now_ms: u64, dice: &mut Dice) -> Answer {
        let mood = if self.is_well { 0 } else { dice.below(20) };
        let bad = Self::is_bad(key);
        let answer = match mood {
            10 => http(429, &[("retry-after", "1")], ""),
            11 => http(429, &[], ""),
            12 => http(503, &[], ""),
            13 => Answer::NotSent { phase: "connect", error: "refused".into() },
            14 => unanswered("reset"),
            15 => http(500, &[], ""),
            16 => http(499, &[], ""),
            17 | 18 if !bad => return self.accept(key, send_id, now_ms, true),
            19 if dice.one_in(4) => http(401, &[], ""),
            _ if bad => http(422, &[], "no such address"),
            _ => return self.accept(key, send_id, now_ms, false),
        };
        let entry = self.ledger.entry(key.to_owned()).or_default();
        match &answer {
            Answer::Http(HttpAnswer { status: 401 | 422, .. }) => entry.refused += 1,
            Answer::Http(HttpAnswer { status: 429, .. }) => {}
            _ => entry.unlucky += 1,
        }
        answer
    }

    fn accept(&mut self, key: &str, send_id: &str, now_ms: u64, silently: bool) -> Answer {
        let known = self.seen.get(send_id).is_some_and(|&at_ms| now_ms - at_ms < DEDUP_WINDOW_MS);
        let entry = self.ledger.entry(key.to_owned()).or_default();
        if !(known && self.terms.deduplicates()) {
            entry.delivered += 1;
            self.seen.insert(send_id.to_owned(), now_ms);
        }
        if silently {
            entry.unlucky += 1;
            return unanswered("first_byte");
        }
        http(202, &[], "{}")
    }
}
