//! When an allowance is there again, as other headers than `Retry-After` say it: the draft `RateLimit` fields
//! (draft-ietf-httpapi-ratelimit-headers) and what vendors write without one.

use crate::answer::HttpAnswer;
use crate::retry_after;

/// Nobody means a longer wait than this by a reset: what says more is a misreading, and ignored.
const MOST_MS: u64 = 7 * 86_400_000;

/// The wait in ms until the allowance that is used up is there again. Asked only of a throttled answer without a
/// `Retry-After`, which would win. Nothing, where nothing plausible stands there or the moment is past.
///
/// `RateLimit: "policy";r=0;t=30` and `RateLimit-Reset` count seconds. `X-RateLimit-Reset` and its like are told apart
/// by magnitude: seconds to go, an instant in seconds, or one in ms; instants are measured against the answer's own
/// `Date`, so that neither side's clock matters.
pub fn wait_ms(answer: &HttpAnswer, now_ms: u64) -> Option<u64> {
    let from_ms = || answer.header("date").and_then(retry_after::date_ms).unwrap_or(now_ms);
    let field = answer.header("ratelimit").and_then(used_up_ms);
    let draft = || answer.header("ratelimit-reset").and_then(seconds_ms);
    let vendors = || {
        ["x-ratelimit-reset", "x-rate-limit-reset", "x-ratelimit-reset-requests"]
            .iter()
            .find_map(|name| answer.header(name))
            .and_then(|value| by_magnitude_ms(value, from_ms()))
    };
    field.or_else(draft).or_else(vendors).filter(|ms| (1..=MOST_MS).contains(ms))
}

/// The longest `t` among the policies whose `r` is 0.
fn used_up_ms(field: &str) -> Option<u64> {
    let parameter = |item: &str, name: &str| {
        let parameters = item.split(';').skip(1).filter_map(|parameter| parameter.trim().split_once('='));
        let found = parameters.into_iter().find(|(key, _)| key.trim() == name);
        found.and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    let used_up = field.split(',').filter(|item| parameter(item, "r") == Some(0));
    used_up.filter_map(|item| parameter(item, "t")).max().map(|seconds| seconds.saturating_mul(1_000))
}

fn seconds_ms(value: &str) -> Option<u64> {
    value.parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1_000))
}

pub(crate) fn by_magnitude_ms(value: &str, from_ms: u64) -> Option<u64> {
    let number: f64 = value.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    Some(match number {
        // 2001 in seconds: no vendor counts so many seconds to go.
        0.0..1e9 => (number * 1_000.0).ceil() as u64,
        1e9..1e11 => ((number * 1_000.0) as u64).saturating_sub(from_ms),
        _ => (number as u64).saturating_sub(from_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_MS: u64 = 1_796_115_600_000; // 2026-12-01T09:00:00Z

    fn wait(headers: &[(&str, &str)]) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        wait_ms(&HttpAnswer { status: 429, headers, ..HttpAnswer::default() }, NOW_MS)
    }

    /// failures 13: an instant or a countdown, by magnitude; one wrong guess parks no job for decades.
    #[test]
    fn a_vendors_reset_is_told_apart_by_magnitude() {
        let reset = |value: &str| wait(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", value)]);
        assert_eq!(reset("2513"), Some(2_513_000));
        assert_eq!(reset("1796115630"), Some(30_000), "epoch seconds, 30 ahead");
        assert_eq!(reset("1796115630500"), Some(30_500), "epoch ms");
        assert_eq!(reset("1372700873"), None, "long past: no extra wait");
        for odd in ["0", "", "soon", "-5", "nan", "999999999", "1e300", "4102444800"] {
            assert_eq!(reset(odd), None, "{odd}");
        }
    }

    /// failures 14: the draft's countdown is no instant, and a skewed clock changes nothing.
    #[test]
    fn the_draft_counts_seconds_and_instants_are_measured_against_the_answers_own_date() {
        assert_eq!(wait(&[("ratelimit", "\"sliding-window\";r=0;t=30")]), Some(30_000));
        assert_eq!(wait(&[("ratelimit", "\"a\";r=5;t=90, \"b\";r=0;t=7")]), Some(7_000));
        assert_eq!(wait(&[("ratelimit", "\"a\";r=5;t=90")]), None, "nothing is used up");
        assert_eq!(wait(&[("ratelimit-reset", "30")]), Some(30_000));
        for date in ["Tue, 01 Dec 2026 09:01:30 GMT", "Tue, 01 Dec 2026 08:58:30 GMT"] {
            let at_s = retry_after::date_ms(date).unwrap() / 1_000 + 30;
            assert_eq!(
                wait(&[("date", date), ("x-ratelimit-reset", &at_s.to_string())]),
                Some(30_000),
                "{date}"
            );
        }
    }

    proptest! {
        #[test]
        fn it_is_total(name in 0usize..4, value in "\\PC{0,40}") {
            let name = ["ratelimit", "ratelimit-reset", "x-ratelimit-reset", "date"][name];
            if let Some(ms) = wait(&[(name, &value)]) {
                prop_assert!((1..=MOST_MS).contains(&ms));
            }
        }
    }
}
