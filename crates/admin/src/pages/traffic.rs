//! What a class sent, minute by minute, from the counts that settle keeps.

use crate::classes::{App, Known};
use crate::codes::{CodeRow, rows};
use paceline_store::StoreError;
use std::collections::BTreeMap;

/// How far back charts look.
pub(super) const MINUTES: u64 = 60;

/// Attempts of one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Minute {
    pub(super) began_ms: u64,
    pub(super) accepted: u64,
    pub(super) throttled: u64,
    /// Every other end of an attempt.
    pub(super) other: u64,
}

impl Minute {
    pub(super) fn attempts(&self) -> u64 {
        self.accepted + self.throttled + self.other
    }
}

/// The last hour of a class.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) minutes: Vec<Minute>,
    pub(super) codes: Vec<CodeRow>,
}

impl Traffic {
    pub(super) async fn read(app: &App, known: &Known) -> Result<Self, StoreError> {
        let (mut minutes, mut sums) = (Vec::new(), BTreeMap::new());
        for (minute, counts) in app.store.counts(&known.at, MINUTES).await? {
            minutes.push(of_minute(minute, &counts));
            for (count, n) in counts {
                *sums.entry(count).or_default() += n;
            }
        }
        Ok(Self { minutes, codes: rows(sums) })
    }

    pub(super) fn attempts(&self) -> u64 {
        self.minutes.iter().map(Minute::attempts).sum()
    }

    pub(super) fn throttled(&self) -> u64 {
        self.minutes.iter().map(|minute| minute.throttled).sum()
    }

    /// Throttled of all attempts; 0 where there was none.
    pub(super) fn throttled_share(&self) -> f64 {
        self.throttled() as f64 / self.attempts().max(1) as f64
    }
}

/// `code|outcome|state`; what has no code is no attempt but a movement of ours.
fn of_minute(minute: u64, counts: &[(String, u64)]) -> Minute {
    let mut sums = Minute { began_ms: minute * 60_000, ..Minute::default() };
    for (count, n) in counts.iter().filter(|(count, _)| !count.starts_with('|')) {
        match count.rsplit('|').nth(1) {
            Some("accepted") => sums.accepted += n,
            Some("throttled") => sums.throttled += n,
            _ => sums.other += n,
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_no_attempt_is_not_counted_as_one() {
        let counts =
            [("200|accepted|submitted", 5), ("429|throttled|pending", 2), ("a|b|transient|pending", 1)];
        let counts = counts.map(|(count, n)| (count.to_owned(), n));
        let mut all = counts.to_vec();
        all.push(("|replayed|pending".to_owned(), 9));
        let minute = of_minute(2, &all);
        assert_eq!(minute, Minute { began_ms: 120_000, accepted: 5, throttled: 2, other: 1 });
        assert_eq!(minute.attempts(), 8);
    }
}
