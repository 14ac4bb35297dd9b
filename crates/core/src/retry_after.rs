//! `Retry-After`, read by one total function (RFC 9110 §10.2.3, dates §5.6.7).

use std::time::{SystemTime, UNIX_EPOCH};

/// The wait in ms that `value` names, or `None` where it equals no header at all.
///
/// - digits are seconds, saturating: an enormous number stays a long wait and never overflows;
/// - a plain decimal is outside the grammar but met in the field: rounded *up* to the next ms, so that an
///   obedient sender never wakes early;
/// - each of the three HTTP-date forms is measured against `date`, the response's own `Date`, so that
///   neither side's clock matters; without one, against `now_ms`. A past date asks for no wait: zero;
/// - signs, exponents, `nan`, `inf`, blanks and other words equal an absent header.
pub fn parse(value: &str, date: Option<&str>, now_ms: u64) -> Option<u64> {
    let value = value.trim_matches([' ', '\t']);
    if let Some(wait_ms) = seconds_ms(value) {
        return Some(wait_ms);
    }
    let at_ms = date_ms(value)?;
    let from_ms = date.and_then(|date| date_ms(date.trim())).unwrap_or(now_ms);
    Some(at_ms.saturating_sub(from_ms))
}

/// Plain seconds, whole or decimal, as ms.
pub(crate) fn seconds_ms(value: &str) -> Option<u64> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole_ms = whole.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000);
    Some(whole_ms.saturating_add(fraction_ms(fraction)))
}

/// `"503"` → 503, `"5"` → 500, `"1291"` → 130: the digits behind the point as ms, rounded up.
fn fraction_ms(digits: &str) -> u64 {
    let (head, tail) = digits.split_at(digits.len().min(3));
    let ms =
        head.bytes().fold(0, |ms, digit| ms * 10 + u64::from(digit - b'0')) * [100, 10, 1][head.len() - 1];
    ms + u64::from(tail.bytes().any(|digit| digit != b'0'))
}

/// An HTTP date as ms since the epoch.
pub(crate) fn date_ms(value: &str) -> Option<u64> {
    // asctime pads the day with a second blank; the parser wants it as it stands.
    let at: SystemTime = httpdate::parse_http_date(value).ok()?;
    let ms = at.duration_since(UNIX_EPOCH).ok()?.as_millis();
    u64::try_from(ms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wait(value: &str) -> Option<u64> {
        parse(value, None, 1_593_120_492_000) // 2020-06-25 21:28:12Z
    }

    #[test]
    fn whole_seconds_are_taken_as_they_are() {
        assert_eq!(wait("0"), Some(0));
        assert_eq!(wait("61"), Some(61_000));
        assert_eq!(wait("3600"), Some(3_600_000));
    }

    /// failures 1: a fraction never turns a throttle into an error and never wakes us early.
    #[test]
    fn a_decimal_is_rounded_up_and_never_down() {
        assert_eq!(wait("0.503"), Some(503));
        assert_eq!(wait("0.129"), Some(129));
        assert_eq!(wait("0.1291"), Some(130));
        assert_eq!(wait("299.997"), Some(299_997));
        assert_eq!(wait(" 2.5 "), Some(2_500));
    }

    /// failures 1, 2, 11: outside the grammar equals absent.
    #[test]
    fn malformed_values_equal_no_header() {
        for value in [
            "1e3", "1e10000", "nan", "inf", "Infinity", "-1", "-1.5", "+5", "", " \t", ".", "5.", ".5", "5s",
            "1 2",
        ] {
            assert_eq!(wait(value), None, "{value:?}");
        }
    }

    /// failures 4: no overflow, and never less than was asked.
    #[test]
    fn an_enormous_number_stays_a_long_wait() {
        assert_eq!(wait("9999999999"), Some(9_999_999_999_000));
        for value in ["18446744073709551616", "99999999999999999999999999"] {
            assert_eq!(wait(value), Some(u64::MAX), "{value}");
        }
    }

    /// failures 7, 8: three forms, one instant, always UTC.
    #[test]
    fn all_three_date_forms_give_the_same_wait() {
        for value in
            ["Thu, 25 Jun 2020 21:30:12 GMT", "Thursday, 25-Jun-20 21:30:12 GMT", "Thu Jun 25 21:30:12 2020"]
        {
            assert_eq!(wait(value), Some(120_000), "{value}");
        }
        let now_ms = 1_825_000_000_000;
        let waits =
            ["Sat, 06 Nov 2027 08:49:37 GMT", "Saturday, 06-Nov-27 08:49:37 GMT", "Sat Nov  6 08:49:37 2027"]
                .map(|value| parse(value, None, now_ms));
        assert!(waits[0].is_some());
        assert_eq!(waits, [waits[0]; 3]);
    }

    /// failures 2: a past instant asks for no further wait.
    #[test]
    fn a_past_date_asks_for_no_wait() {
        assert_eq!(wait("Wed, 21 Oct 2015 07:28:00 GMT"), Some(0));
    }

    /// failures 14: a skewed server is measured by its own clock.
    #[test]
    fn a_date_is_measured_against_the_responses_own_date() {
        for date in ["Thu, 25 Jun 2020 21:29:42 GMT", "Thu, 25 Jun 2020 21:26:42 GMT"] {
            let asked = match date {
                "Thu, 25 Jun 2020 21:29:42 GMT" => "Thu, 25 Jun 2020 21:30:12 GMT",
                _ => "Thu, 25 Jun 2020 21:27:12 GMT",
            };
            assert_eq!(parse(asked, Some(date), 1_593_120_492_000), Some(30_000));
        }
    }

    proptest! {
        #[test]
        fn it_is_total(value in "\\PC{0,40}", date in prop::option::of("\\PC{0,40}"), now_ms in any::<u64>()) {
            let _ = parse(&value, date.as_deref(), now_ms);
        }

        #[test]
        fn a_decimal_never_wakes_early(whole in 0u64..1_000_000, digits in "[0-9]{1,9}") {
            let wait_ms = parse(&format!("{whole}.{digits}"), None, 0).unwrap();
            let exact_ms = (whole as f64 + format!("0.{digits}").parse::<f64>().unwrap()) * 1000.0;
            prop_assert!(wait_ms as f64 >= exact_ms - 1e-3 && (wait_ms as f64) < exact_ms + 1.001);
        }
    }
}
