//! Allowances over spans longer than a rate's.

use crate::Fault;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use std::fmt;
use std::str::FromStr;

/// So much per span: `5000/h`, `100000/30d` (any window of that length), or `50000/day America/Los_Angeles`,
/// `1000000/month UTC` (the vendor's own day or month, from midnight of that zone).
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    limit: u64,
    per: Per,
}

#[derive(Debug, Clone, PartialEq)]
enum Per {
    Window { count: u64, unit: char },
    Day(TimeZone),
    Month(TimeZone),
}

/// What a quota counts at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// The window of this length that ends now.
    Trailing {
        /// Its length.
        window_ms: u64,
    },
    /// The vendor's own span.
    Turning {
        /// When it began, in ms since the epoch.
        began_ms: u64,
        /// When the next one begins.
        turns_ms: u64,
    },
}

impl Quota {
    /// How much it allows per span.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What it counts at `now_ms`.
    pub fn span(&self, now_ms: u64) -> Span {
        match &self.per {
            Per::Window { count, unit } => Span::Trailing { window_ms: count * unit_ms(*unit) },
            Per::Day(zone) => turning(zone, now_ms, |date| (date, date.saturating_add(1.day()))),
            Per::Month(zone) => turning(zone, now_ms, |date| {
                let first = date.first_of_month();
                (first, first.saturating_add(1.month()))
            }),
        }
    }

    /// A short word of `[a-z0-9_-]`, the same for the same text and no other: part of a key.
    pub fn label(&self) -> String {
        self.to_string().to_lowercase().replace(['/', ' ', '+'], "-")
    }
}

fn unit_ms(unit: char) -> u64 {
    match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        _ => 86_400_000,
    }
}

fn turning(zone: &TimeZone, now_ms: u64, bounds: impl Fn(Date) -> (Date, Date)) -> Span {
    let now = moment(now_ms);
    let (began, turns) = bounds(zone.to_datetime(now).date());
    Span::Turning { began_ms: midnight_ms(zone, began), turns_ms: midnight_ms(zone, turns) }
}

/// The moment of a time in ms; what is beyond the calendar is its end.
pub(crate) fn moment(ms: u64) -> Timestamp {
    i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}

/// The first moment of a day: where midnight does not exist, the moment the clocks jump to.
fn midnight_ms(zone: &TimeZone, date: Date) -> u64 {
    let start = zone.to_timestamp(date.to_datetime(jiff::civil::Time::midnight()));
    start.map_or(0, |start| start.as_millisecond().max(0) as u64)
}

/// A zone of the IANA database that ships in the binary: nothing is read from the machine.
pub(crate) fn zone(field: &str, name: &str) -> Result<TimeZone, Fault> {
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        Fault::new(field, format!("{name:?} is not a time zone; write one like \"Europe/Berlin\" or \"UTC\""))
    })
}

impl FromStr for Quota {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let wrong = || {
            let right =
                "\"5000/h\", \"100000/30d\", \"50000/day America/Los_Angeles\" or \"1000000/month UTC\"";
            Fault::new("quotas", format!("{text:?} is not a quota; write it like {right}"))
        };
        let (limit, span) = text.trim().split_once('/').ok_or_else(wrong)?;
        let limit: u64 = limit.trim().replace('_', "").parse().map_err(|_| wrong())?;
        let per = match span.trim().split_once(' ') {
            Some(("day", name)) => Per::Day(zone("quotas", name.trim())?),
            Some(("month", name)) => Per::Month(zone("quotas", name.trim())?),
            Some(_) => return Err(wrong()),
            None => {
                let span = span.trim();
                let digits = span.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let unit = match &span[digits.len()..] {
                    "s" => 's',
                    "min" => 'm',
                    "h" => 'h',
                    "d" => 'd',
                    _ => return Err(wrong()),
                };
                let count = if digits.is_empty() { 1 } else { digits.parse().map_err(|_| wrong())? };
                Per::Window { count, unit }
            }
        };
        let is_sane = match &per {
            Per::Window { count, unit } => {
                (1..=86_400_000 * 366).contains(&count.saturating_mul(unit_ms(*unit)))
            }
            _ => true,
        };
        if limit == 0 || limit > 1_000_000_000_000 || !is_sane {
            let problem = format!("{text:?} must allow from 1 to 1000000000000 in at most 366 days");
            return Err(Fault::new("quotas", problem));
        }
        Ok(Self { limit, per })
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |zone: &TimeZone| zone.iana_name().unwrap_or("UTC").to_owned();
        match &self.per {
            Per::Window { count, unit } => {
                let unit = if *unit == 'm' { "min".to_owned() } else { unit.to_string() };
                let count = if *count == 1 { String::new() } else { count.to_string() };
                write!(f, "{}/{count}{unit}", self.limit)
            }
            Per::Day(zone) => write!(f, "{}/day {}", self.limit, name(zone)),
            Per::Month(zone) => write!(f, "{}/month {}", self.limit, name(zone)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quota(text: &str) -> Quota {
        text.parse().unwrap()
    }

    fn ms(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().as_millisecond() as u64
    }

    #[test]
    fn what_operators_write_reads_back() {
        for text in
            ["5000/h", "100/min", "20000/24h", "1000000/30d", "50000/day America/Los_Angeles", "7/month UTC"]
        {
            assert_eq!(quota(text).to_string(), text);
        }
        for bad in
            ["", "5000", "0/h", "1/day", "1/week UTC", "x/h", "1/day Mars/Base", "1/0h", "9/99999d", "-1/h"]
        {
            assert_eq!(bad.parse::<Quota>().unwrap_err().field, "quotas", "{bad}");
        }
    }

    #[test]
    fn labels_are_words_for_keys_and_tell_quotas_apart() {
        let labels = ["5000/h", "50/day Etc/GMT+5", "50/day Etc/GMT-5"].map(|text| quota(text).label());
        assert!(labels[0] == "5000-h" && labels.iter().all(|label| !label.contains([' ', '/', '{', ':'])));
        assert_ne!(quota("50/day Etc/GMT").label(), quota("50/month Etc/GMT").label());
    }

    #[test]
    fn a_vendors_day_begins_at_its_own_midnight_also_when_the_clocks_change() {
        let day = |text: &str, now: &str| match quota(text).span(ms(now)) {
            Span::Turning { began_ms, turns_ms } => (began_ms, turns_ms),
            Span::Trailing { .. } => panic!("a day turns"),
        };
        let (began, turns) = day("1/day America/Los_Angeles", "2026-03-08T20:00:00Z");
        assert_eq!((began, turns), (ms("2026-03-08T08:00:00Z"), ms("2026-03-09T07:00:00Z")), "23 hours");
        let (began, turns) = day("1/day America/Los_Angeles", "2026-11-01T20:00:00Z");
        assert_eq!((began, turns), (ms("2026-11-01T07:00:00Z"), ms("2026-11-02T08:00:00Z")), "25 hours");
        let (began, turns) = day("1/month UTC", "2026-12-31T23:59:59Z");
        assert_eq!((began, turns), (ms("2026-12-01T00:00:00Z"), ms("2027-01-01T00:00:00Z")));
    }

    proptest! {
        #[test]
        fn now_is_always_within_the_span(now_ms in 0u64..4_000_000_000_000, zone in 0usize..4) {
            let zone = ["UTC", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Cairo"][zone];
            for per in ["day", "month"] {
                let Span::Turning { began_ms, turns_ms } = quota(&format!("1/{per} {zone}")).span(now_ms) else {
                    panic!("it turns")
                };
                prop_assert!(began_ms <= now_ms && now_ms < turns_ms, "{began_ms} {now_ms} {turns_ms}");
            }
        }
    }
}
