//! Numbers, ages and moments as people read them.

use crate::time::rfc3339;
use maud::{Markup, html};

/// `12,345`
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 job`, `2 jobs`
pub(super) fn many(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { more })
}

/// `0.4 s`, `42 s`, `3 min 5 s`, `2 h 5 min`, `3 d 4 h`
pub(super) fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    let two = |large: u64, of: &str, small: u64, part: &str| match small {
        0 => format!("{large} {of}"),
        small => format!("{large} {of} {small} {part}"),
    };
    match seconds {
        0 if ms == 0 => "0 s".to_owned(),
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// `100/s`, `12.5/s`, `30/min`: no rate is shown as 0 that is not.
pub(super) fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => "0/s".to_owned(),
        1.0.. => format!("{}/s", short(per_s)),
        _ if per_s * 60.0 >= 1.0 => format!("{}/min", short(per_s * 60.0)),
        _ => format!("{}/h", short(per_s * 3_600.0)),
    }
}

/// As many digits as say something.
pub(super) fn short(number: f64) -> String {
    if number >= 100.0 || number.fract().abs() < 0.05 {
        count(number.round() as u64)
    } else {
        format!("{number:.1}")
    }
}

/// `4 %`; a little is never shown as none.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "< 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// `retry after` for `retry_after`.
pub(super) fn plain(word: &str) -> String {
    word.replace('_', " ")
}

/// `09:00:07`
pub(super) fn time_of(ms: u64) -> String {
    rfc3339(ms).get(11..19).unwrap_or_default().to_owned()
}

/// `09:00`
pub(super) fn minute_of(ms: u64) -> String {
    rfc3339(ms).get(11..16).unwrap_or_default().to_owned()
}

/// `09:00:07`, with the whole moment behind it.
pub(super) fn clock(ms: u64) -> Markup {
    let whole = rfc3339(ms);
    html! { time datetime=(whole) title=(whole) { (time_of(ms)) } }
}

/// `1 Dec 2026 09:00:07` would need a language; this is the same everywhere and sorts.
pub(super) fn moment(ms: u64) -> Markup {
    let whole = rfc3339(ms);
    let day = whole.get(..10).unwrap_or_default();
    html! { time datetime=(whole) title=(whole) { (day) " " (time_of(ms)) } }
}

/// The time of day where it is today's, else the whole moment.
pub(super) fn near(ms: u64, now_ms: u64) -> Markup {
    if rfc3339(ms).get(..10) == rfc3339(now_ms).get(..10) { clock(ms) } else { moment(ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(many(1, "job", "jobs"), "1 job");
        let spans = [0, 400, 59_999, 185_000, 7_500_000, 273_600_000].map(span);
        assert_eq!(spans, ["0 s", "400 ms", "59 s", "3 min 5 s", "2 h 5 min", "3 d 4 h"]);
    }

    #[test]
    fn a_little_is_not_nothing() {
        assert_eq!(
            [0.0, 0.01, 0.5, 1.0, 87.5, 120.0].map(rate),
            ["0/s", "36/h", "30/min", "1/s", "87.5/s", "120/s"]
        );
        assert_eq!([0.0, 0.001, 0.7].map(percent), ["0 %", "< 1 %", "70 %"]);
    }
}
