//! Rates the way operators say them, and the limits a budget holds.

use crate::Fault;
use crate::pace::Bounds;
use crate::quota::Quota;
use std::fmt;
use std::str::FromStr;

/// A rate such as `100/s`, `60/min` or `5000/h`; always above zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    count: f64,
    per: Per,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    Second,
    Minute,
    Hour,
}

/// The part of its ceiling that an untried budget starts at, and of its burst: an early burst would empty the
/// provider's bucket before the pace has measured it.
const MODEST: f64 = 0.2;
const FIRST_BURST: f64 = 0.05;

impl Rate {
    /// A hundredth of it, where the floor is unless the operator says otherwise.
    pub fn hundredth(self) -> Self {
        Self { count: (self.per_s() / 100.0).max(1e-5), per: Per::Second }
    }

    /// The rate as tokens a second.
    pub fn per_s(self) -> f64 {
        self.count
            / match self.per {
                Per::Second => 1.0,
                Per::Minute => 60.0,
                Per::Hour => 3_600.0,
            }
    }
}

impl FromStr for Rate {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let wrong = || {
            Fault::new(
                "rate",
                format!("{text:?} is not a rate; write it like \"100/s\", \"60/min\" or \"5000/h\""),
            )
        };
        let (count, per) = text.split_once('/').ok_or_else(wrong)?;
        let count: f64 = count.trim().replace('_', "").parse().map_err(|_| wrong())?;
        let per = match per.trim() {
            "s" => Per::Second,
            "min" => Per::Minute,
            "h" => Per::Hour,
            _ => return Err(wrong()),
        };
        let rate = Self { count, per };
        if !(count.is_finite() && rate.per_s() >= 1e-5 && rate.per_s() <= 100_000.0) {
            return Err(Fault::new(
                "rate",
                format!("{text:?} must be above 0 and at most 100000/s; to stop sending, pause the class"),
            ));
        }
        Ok(rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = match self.per {
            Per::Second => "s",
            Per::Minute => "min",
            Per::Hour => "h",
        };
        write!(f, "{}/{per}", self.count)
    }
}

/// How classes share a budget, and first attempts and retries a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// A class's reserve holds this much of its share of the pace.
    pub reserve_ms: f64,
    /// But at least so many tokens; together at most half the burst.
    pub reserve_least: f64,
    /// For how long beyond its own wait a class that wants tokens has those that are shed earlier wait.
    pub wants_ms: f64,
    /// What each first attempt adds to the credit of retries.
    pub credit_per_first: f64,
    /// The most credit there is.
    pub credit_most: f64,
}

/// The one way of sharing there is.
pub const SHARING: Sharing = Sharing {
    reserve_ms: 100.0,
    reserve_least: 2.0,
    wants_ms: 100.0,
    credit_per_first: 0.25,
    credit_most: 5.0,
};

/// Where the pace of a budget starts that was never tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the ceiling: the remote side's limit is known.
    Ceiling,
    /// Well below it: the ceiling is a guess, and a first burst of a wrong one is all throttled.
    Modest,
}

/// What a budget allows, shared by every worker that spends from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The ceiling: tokens a second.
    pub rate: Rate,
    /// Tokens that may leave at once, as configured.
    pub burst: u32,
    /// The pace never falls below.
    pub floor: Rate,
    /// Where the pace starts.
    pub start: Start,
    /// What is throttled changes the pace; else it is the ceiling always.
    pub adapts: bool,
    /// Leases that may stand at once over all workers; 0: no limit.
    pub max_in_flight: u32,
    /// Allowances over longer spans.
    pub quotas: Vec<Quota>,
}

impl Limits {
    /// A pace that starts at its ceiling and stays there.
    pub fn fixed(rate: Rate, burst: u32, max_in_flight: u32) -> Self {
        let floor = rate.hundredth();
        Self { rate, burst, floor, start: Start::Ceiling, adapts: false, max_in_flight, quotas: Vec::new() }
    }

    /// The burst in force: a tenth below the configured one (at least one token), because the first burst
    /// compresses on the wire and an equal one meets a 429 in every run.
    pub fn effective_burst(&self) -> u32 {
        self.burst.saturating_sub((self.burst / 10).max(1)).max(1)
    }

    /// What the pace law may do with it.
    pub fn bounds(&self) -> Bounds {
        let (ceiling_per_s, ceiling_burst) = (self.rate.per_s(), f64::from(self.effective_burst()));
        let (first_per_s, first_burst) = match self.start {
            Start::Ceiling => (ceiling_per_s, ceiling_burst),
            Start::Modest => (ceiling_per_s * MODEST, (ceiling_burst * FIRST_BURST).max(1.0)),
        };
        let floor_per_s = self.floor.per_s().min(ceiling_per_s);
        Bounds {
            ceiling_per_s,
            ceiling_burst,
            floor_per_s,
            first_per_s: first_per_s.max(floor_per_s),
            first_burst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_read_the_way_operators_say_them() {
        assert_eq!("100/s".parse::<Rate>().unwrap().per_s(), 100.0);
        assert_eq!("60/min".parse::<Rate>().unwrap().per_s(), 1.0);
        assert_eq!("1_800/h".parse::<Rate>().unwrap().per_s(), 0.5);
        for bad in ["", "100", "0/s", "-1/s", "NaN/s", "inf/s", "1/day", "1e9/s", "x/s"] {
            assert_eq!(bad.parse::<Rate>().unwrap_err().field, "rate", "{bad}");
        }
    }

    #[test]
    fn the_effective_burst_leaves_a_margin_and_never_vanishes() {
        let burst = |burst| Limits::fixed("1/s".parse().unwrap(), burst, 0).effective_burst();
        assert_eq!([1, 2, 10, 50, 60].map(burst), [1, 1, 9, 45, 54]);
    }

    proptest! {
        #[test]
        fn a_rate_reads_back_from_what_it_prints(count in 1u32..100_000, unit in 0usize..3) {
            let text = format!("{count}/{}", ["s", "min", "h"][unit]);
            prop_assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }
}
