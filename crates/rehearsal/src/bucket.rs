//! The remote side's limit: a token bucket per credential, with a rate that may change at known moments.
//!
//! Pure: `now` is an argument, the time since the sandbox started.

use std::time::Duration;

/// A token short by rounding alone is a token. What is lent is owed (the balance goes below zero by as
/// much), so it never adds up.
const ROUNDING: f64 = 1e-9;

/// What every credential may do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    burst: f64,
    /// From when which rate holds, in order of time; the first holds from the start.
    steps: Vec<(Duration, f64)>,
}

impl Limit {
    /// `rate_per_s` from the start on, then what `schedule` says; its moments rise.
    pub(crate) fn new(
        burst: u32,
        rate_per_s: f64,
        schedule: impl IntoIterator<Item = (Duration, f64)>,
    ) -> Self {
        let steps = std::iter::once((Duration::ZERO, rate_per_s)).chain(schedule).collect();
        Self { burst: f64::from(burst), steps }
    }

    /// The tokens that flow in between two moments.
    fn refill(&self, from: Duration, to: Duration) -> f64 {
        let ends = self.steps.iter().skip(1).map(|(start, _)| *start).chain([Duration::MAX]);
        self.steps
            .iter()
            .zip(ends)
            .map(|((start, rate), end)| end.min(to).saturating_sub(from.max(*start)).as_secs_f64() * rate)
            .sum()
    }
}

/// One credential's tokens.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    tokens: f64,
    settled: Duration,
}

impl Bucket {
    /// As a credential that was never seen finds it.
    pub(crate) fn full(limit: &Limit, now: Duration) -> Self {
        Self { tokens: limit.burst, settled: now }
    }

    /// Adds what flowed in since the last look. A limit that is about to change is settled first: the past
    /// keeps its own rate.
    pub(crate) fn settle(&mut self, limit: &Limit, now: Duration) {
        self.tokens = (self.tokens + limit.refill(self.settled, now)).min(limit.burst);
        self.settled = self.settled.max(now);
    }

    /// Takes one token, if there is one.
    pub(crate) fn try_take(&mut self, limit: &Limit, now: Duration) -> bool {
        self.settle(limit, now);
        let granted = self.tokens >= 1.0 - ROUNDING;
        if granted {
            self.tokens -= 1.0;
        }
        granted
    }

    /// A refusal that costs a token as well: the more one knocks, the longer one waits, but never for more
    /// than a burst's worth.
    pub(crate) fn charge_refusal(&mut self, limit: &Limit) {
        self.tokens = (self.tokens - 1.0).max(-limit.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn granted(bucket: &mut Bucket, limit: &Limit, now: Duration, tries: usize) -> usize {
        (0..tries).take_while(|_| bucket.try_take(limit, now)).count()
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_flows_in_continuously() {
        let limit = Limit::new(5, 10.0, []);
        let mut bucket = Bucket::full(&limit, ms(0));
        let grants = [0, 99, 100, 350, 10_000].map(|at| granted(&mut bucket, &limit, ms(at), 9));
        assert_eq!(grants, [5, 0, 1, 2, 5]);
    }

    #[test]
    fn a_schedule_changes_the_rate_at_its_moment_and_not_before() {
        let limit = Limit::new(100, 10.0, [(ms(1_000), 0.0), (ms(3_000), 40.0)]);
        let mut bucket = Bucket::full(&limit, ms(0));
        let grants = [0, 1_000, 2_999, 3_500].map(|at| granted(&mut bucket, &limit, ms(at), 200));
        assert_eq!(grants, [100, 10, 0, 20]);
        let mut asleep = Bucket::full(&limit, ms(0));
        granted(&mut asleep, &limit, ms(0), 100);
        assert_eq!(granted(&mut asleep, &limit, ms(3_500), 200), 30, "one long look adds the same up");
    }

    #[test]
    fn charged_refusals_go_below_zero_but_not_below_a_burst() {
        let limit = Limit::new(2, 1.0, []);
        let mut bucket = Bucket::full(&limit, ms(0));
        for _ in 0..50 {
            if !bucket.try_take(&limit, ms(0)) {
                bucket.charge_refusal(&limit);
            }
        }
        assert!(!bucket.try_take(&limit, ms(2_900)));
        assert!(bucket.try_take(&limit, ms(3_000)));
    }

    #[test]
    fn a_clock_that_steps_back_gives_nothing() {
        let limit = Limit::new(1, 1.0, []);
        let mut bucket = Bucket::full(&limit, ms(5_000));
        assert_eq!([5_000, 1_000, 5_500].map(|at| bucket.try_take(&limit, ms(at))), [true, false, false]);
    }

    prop_compose! {
        fn any_limit()(burst in 1u32..100, rate in 0.0f64..500.0, later in 0.0f64..500.0, at in 0u64..5_000)
            -> (Limit, f64)
        {
            (Limit::new(burst, rate, [(ms(at), later)]), rate.max(later))
        }
    }

    proptest! {
        /// The provider's promise, over every window between two requests.
        #[test]
        fn no_window_holds_more_than_its_burst_and_its_refill(
            (limit, top_rate) in any_limit(),
            pauses_ms in prop::collection::vec(0u64..50, 1..200),
            refusals_consume in any::<bool>(),
        ) {
            let mut bucket = Bucket::full(&limit, ms(0));
            let mut now_ms = 0;
            let mut grants_ms = Vec::new();
            for pause_ms in pauses_ms {
                now_ms += pause_ms;
                if bucket.try_take(&limit, ms(now_ms)) {
                    grants_ms.push(now_ms);
                } else if refusals_consume {
                    bucket.charge_refusal(&limit);
                }
            }
            for (first, from_ms) in grants_ms.iter().enumerate() {
                for (last, to_ms) in grants_ms.iter().enumerate().skip(first) {
                    let allowed = limit.burst + top_rate * (to_ms - from_ms) as f64 / 1_000.0;
                    prop_assert!((last - first + 1) as f64 <= allowed + 1e-6);
                }
            }
        }

        /// The limit is not secretly lower. (With a burst of one, what flows in within the ms before the next
        /// look is lost; that is the limit's own doing.)
        #[test]
        fn a_steady_sender_gets_the_whole_rate(burst in 2u32..50, rate in 1u32..500, seconds in 1u64..5) {
            let limit = Limit::new(burst, f64::from(rate), []);
            let mut bucket = Bucket::full(&limit, ms(0));
            let got: usize = (0..=seconds * 1_000).map(|at| granted(&mut bucket, &limit, ms(at), 600)).sum();
            prop_assert_eq!(got as u64, u64::from(burst) + u64::from(rate) * seconds);
        }

        #[test]
        fn how_often_one_looks_changes_nothing(
            (limit, _) in any_limit(), looks_ms in prop::collection::vec(1u64..1_000, 1..50),
        ) {
            let (mut often, mut once) = (Bucket::full(&limit, ms(0)), Bucket::full(&limit, ms(0)));
            for bucket in [&mut often, &mut once] {
                granted(bucket, &limit, ms(0), 200);
            }
            let mut now_ms = 0;
            for look_ms in looks_ms {
                now_ms += look_ms;
                often.settle(&limit, ms(now_ms));
            }
            once.settle(&limit, ms(now_ms));
            prop_assert!((often.tokens - once.tokens).abs() < 1e-6);
        }
    }
}
