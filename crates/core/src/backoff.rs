//! How long a job waits before it is tried again: full jitter over a doubling window, never earlier than asked.

use crate::Fault;

/// A doubling window with a cap, both in ms. A value that exists is valid: `0 < base ≤ cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    base_ms: u64,
    cap_ms: u64,
}

impl Backoff {
    /// Refuses a zero base and a cap below the base.
    pub fn new(base_ms: u64, cap_ms: u64) -> Result<Self, Fault> {
        if base_ms == 0 {
            Err(Fault::new("backoff_base_ms", "must be above 0"))
        } else if cap_ms < base_ms {
            Err(Fault::new("backoff_cap_ms", format!("must be at least backoff_base_ms ({base_ms})")))
        } else {
            Ok(Self { base_ms, cap_ms })
        }
    }

    /// The window after `run` throttles and transient ends in a row: `min(cap, base · 2^run)`.
    pub fn window_ms(&self, run: u8) -> u64 {
        let factor = 1u64.checked_shl(u32::from(run)).unwrap_or(u64::MAX);
        self.base_ms.saturating_mul(factor).min(self.cap_ms)
    }

    /// `max(asked + draw₁ · min(asked/10, 5 s), draw₂ · window)`: never earlier than asked, no herd at the
    /// moment asked for, and a zero is no hot loop. The draws are in `[0, 1)`.
    pub fn delay_ms(&self, run: u8, asked_ms: Option<u64>, spread_draw: f64, jitter_draw: f64) -> u64 {
        let own_ms = share(self.window_ms(run), jitter_draw);
        let asked_ms =
            asked_ms.map_or(0, |asked| asked.saturating_add(share((asked / 10).min(5_000), spread_draw)));
        own_ms.max(asked_ms)
    }
}

/// `draw · whole`, for a draw in `[0, 1)`.
fn share(whole: u64, draw: f64) -> u64 {
    debug_assert!((0.0..1.0).contains(&draw));
    (whole as f64 * draw) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Backoff::new(0, 10).unwrap_err().field, "backoff_base_ms");
        assert_eq!(Backoff::new(10, 9).unwrap_err().field, "backoff_cap_ms");
    }

    #[test]
    fn the_window_doubles_to_its_cap() {
        let backoff = Backoff::new(500, 60_000).unwrap();
        assert_eq!([0, 1, 2, 7, 255].map(|run| backoff.window_ms(run)), [500, 1_000, 2_000, 60_000, 60_000]);
    }

    /// failures 76: 10,000 jobs that failed together come back spread over the whole window.
    #[test]
    fn full_jitter_leaves_no_herd() {
        let backoff = Backoff::new(1_000, 300_000).unwrap();
        let mut bins = [0u32; 32];
        for i in 0..10_000u32 {
            let draw = f64::from(i) / 10_000.0;
            bins[(backoff.delay_ms(5, None, 0.0, draw) / 1_000) as usize] += 1;
        }
        let mean = 10_000.0 / 32.0;
        assert!(bins.iter().all(|&n| f64::from(n) < 3.0 * mean && n > 0), "{bins:?}");
    }

    proptest! {
        #[test]
        fn never_earlier_than_asked_and_bounded(
            base in 1u64..10_000, more in 0u64..1_000_000, run in any::<u8>(),
            asked in prop::option::of(any::<u64>()), spread in 0.0..1.0f64, jitter in 0.0..1.0f64,
        ) {
            let backoff = Backoff::new(base, base + more).unwrap();
            let delay = backoff.delay_ms(run, asked, spread, jitter);
            prop_assert!(delay >= asked.unwrap_or(0));
            prop_assert!(delay <= (base + more).max(asked.unwrap_or(0).saturating_add(5_000)));
        }

        #[test]
        fn the_window_never_shrinks(base in 1u64..10_000, more in 0u64..1_000_000, run in 0u8..254) {
            let backoff = Backoff::new(base, base + more).unwrap();
            prop_assert!(backoff.window_ms(run) <= backoff.window_ms(run + 1));
        }
    }
}
