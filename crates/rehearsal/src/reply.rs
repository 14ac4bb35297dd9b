//! The words of an answer, before they are HTTP.

use crate::scenario::{ErrorAnswer, RetryAfter, Scenario};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An answer's status, its `Retry-After` and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: String,
}

impl Reply {
    /// Taken; the message has this id.
    pub(crate) fn accepted(message_id: &str) -> Self {
        Self::new(202, format!(r#"{{"id":"{message_id}","status":"accepted"}}"#))
    }

    /// Refused for a reason of the sandbox's own: one word.
    pub(crate) fn refused(status: u16, reason: &str) -> Self {
        Self::new(status, format!(r#"{{"error":"{reason}"}}"#))
    }

    /// Not right now.
    pub(crate) fn throttled(scenario: &Scenario, now_us: u64) -> Self {
        let retry_after = retry_after(scenario, now_us);
        Self { retry_after, ..Self::refused(scenario.throttle_status, "rate_limited") }
    }

    /// An error as the scenario has it.
    pub(crate) fn error(error: &ErrorAnswer) -> Self {
        let body = error.body.clone().unwrap_or_else(|| format!(r#"{{"error":"status_{}"}}"#, error.status));
        Self { status: error.status, retry_after: error.retry_after.clone(), body }
    }

    fn new(status: u16, body: String) -> Self {
        Self { status, retry_after: None, body }
    }
}

fn retry_after(scenario: &Scenario, now_us: u64) -> Option<String> {
    let wait_s = scenario.retry_after_s;
    match scenario.retry_after {
        RetryAfter::Seconds => Some(format!("{:.0}", wait_s.ceil())),
        RetryAfter::Decimal => Some(format!("{:.3}", (wait_s * 1_000.0).ceil() / 1_000.0)),
        RetryAfter::Date => Some(date(now_us as f64 / 1e6 + wait_s)),
        RetryAfter::Raw => Some(scenario.retry_after_raw.clone()),
        RetryAfter::None => None,
    }
}

/// The form knows whole seconds only; rounded up, because nobody is told to come too early.
fn date(at_s: f64) -> String {
    let at: SystemTime = UNIX_EPOCH + Duration::from_secs(at_s.ceil() as u64);
    httpdate::fmt_http_date(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(retry_after: RetryAfter, retry_after_s: f64) -> Option<String> {
        let retry_after_raw = "soon".into();
        let scenario = Scenario { retry_after, retry_after_s, retry_after_raw, ..Scenario::default() };
        Reply::throttled(&scenario, 1_593_120_492_000_001).retry_after // 2020-06-25 21:28:12Z and 1 µs
    }

    #[test]
    fn the_wait_is_told_in_the_scenarios_form_and_never_too_short() {
        assert_eq!(told(RetryAfter::Seconds, 1.2).as_deref(), Some("2"));
        assert_eq!(told(RetryAfter::Seconds, 0.0).as_deref(), Some("0"));
        assert_eq!(told(RetryAfter::Decimal, 0.5031).as_deref(), Some("0.504"));
        assert_eq!(told(RetryAfter::Decimal, 2.0).as_deref(), Some("2.000"));
        assert_eq!(told(RetryAfter::Date, 60.0).as_deref(), Some("Thu, 25 Jun 2020 21:29:13 GMT"));
        assert_eq!(told(RetryAfter::Raw, 1.0).as_deref(), Some("soon"));
        assert_eq!(told(RetryAfter::None, 1.0), None);
    }

    /// The sandbox must not teach the reader of `Retry-After` anything it would not meet outside.
    #[test]
    fn what_is_told_reads_back_as_at_least_the_wait() {
        let now_ms = 1_593_120_492_000;
        for form in [RetryAfter::Seconds, RetryAfter::Decimal, RetryAfter::Date] {
            let text = told(form, 1.234).unwrap();
            let wait_ms = paceline_core::retry_after::parse(&text, None, now_ms).unwrap();
            assert!((1_234..=2_000).contains(&wait_ms), "{form:?}: {text}");
        }
    }
}
