//! Instants for people: RFC 3339 in UTC, to the ms.

use jiff::Timestamp;

/// `2026-12-01T09:00:00.000Z`; empty where the calendar ends before it.
pub(crate) fn rfc3339(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map(|at| format!("{at:.3}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_utc_to_the_ms() {
        assert_eq!(rfc3339(1_796_115_600_007), "2026-12-01T09:00:00.007Z");
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(u64::MAX), "");
    }
}
