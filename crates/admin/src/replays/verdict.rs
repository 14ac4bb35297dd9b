//! Whether a dead letter may go out again, and how it ended last.

use crate::dead_letters::last_attempt;
use paceline_store::Record;

/// Whether a job may be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing was accepted, or the provider will recognise the send id.
    Safe,
    /// It may have been accepted, and nobody would recognise it: a person says yes.
    MayDouble,
    /// Its time is over.
    Expired,
}

impl Verdict {
    /// `leaves_ms`: when it would be sent. A record that cannot be read may have been accepted.
    pub(super) fn of(record: &Record, dedup_window_ms: Option<u64>, leaves_ms: u64) -> Self {
        let Record::Job(job) = record else { return Self::MayDouble };
        let is_recognised = || {
            let until_ms = job.sent_since_ms.zip(dedup_window_ms).map(|(since, window)| since + window);
            until_ms.is_some_and(|until_ms| leaves_ms < until_ms)
        };
        if job.expires_at_ms.is_some_and(|at_ms| at_ms <= leaves_ms) {
            Self::Expired
        } else if job.flags.ambiguous && !is_recognised() {
            Self::MayDouble
        } else {
            Self::Safe
        }
    }
}

/// How a job ended last, in a closed set of words.
pub(super) fn last_outcome(record: &Record) -> &'static str {
    let Record::Job(job) = record else { return "unreadable" };
    if job.flags.ambiguous {
        return "ambiguous";
    }
    if job.sent_since_ms.is_none() {
        return "never_sent";
    }
    match last_attempt(record).map_or("", |last| last.outcome.as_str()) {
        "terminal" | "sender_refused" => "refused",
        "throttled" => "throttled",
        "quota_spent" => "quota_spent",
        "transient" => "transient",
        "unknown" => "unknown",
        "accepted" => "accepted",
        "not_sent" => "not_sent",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_core::JobKey;
    use paceline_core::history::Attempt;
    use paceline_core::job::Job;

    fn job(change: impl Fn(&mut Job)) -> Record {
        let mut job = Job::new(JobKey::new("k").unwrap(), Vec::new(), 0);
        change(&mut job);
        Record::Job(Box::new(job))
    }

    #[test]
    fn an_ambiguous_job_is_safe_only_while_the_provider_recognises_it() {
        let ambiguous = job(|job| {
            job.flags.ambiguous = true;
            job.sent_since_ms = Some(1_000);
        });
        assert_eq!(Verdict::of(&ambiguous, Some(500), 1_499), Verdict::Safe);
        assert_eq!(Verdict::of(&ambiguous, Some(500), 1_500), Verdict::MayDouble);
        assert_eq!(Verdict::of(&ambiguous, None, 1_001), Verdict::MayDouble);
        let unknown_since = job(|job| job.flags.ambiguous = true);
        assert_eq!(Verdict::of(&unknown_since, Some(500), 0), Verdict::MayDouble);
    }

    #[test]
    fn an_expired_job_is_not_sent_and_an_unreadable_one_is_not_trusted() {
        let expires = job(|job| job.expires_at_ms = Some(10));
        assert_eq!(Verdict::of(&expires, None, 9), Verdict::Safe);
        assert_eq!(Verdict::of(&expires, None, 10), Verdict::Expired);
        assert_eq!(Verdict::of(&Record::Newer(9), Some(500), 0), Verdict::MayDouble);
    }

    #[test]
    fn the_last_outcome_is_one_of_a_closed_set() {
        let ended = |outcome: &str| {
            job(|job| {
                job.sent_since_ms = Some(1);
                job.history.push(Attempt { outcome: outcome.into(), ..Attempt::default() });
            })
        };
        assert_eq!(last_outcome(&ended("terminal")), "refused");
        assert_eq!(last_outcome(&ended("throttled")), "throttled");
        assert_eq!(last_outcome(&ended("<b>")), "other");
        assert_eq!(last_outcome(&job(|_| {})), "never_sent");
        assert_eq!(last_outcome(&Record::Odd), "unreadable");
    }
}
