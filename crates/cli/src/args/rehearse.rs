//! The options of `paceline rehearse`.

use paceline_rehearsal::scenario::LimitStep;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  paceline rehearse                                     a known limit, 3,000 bulk and 12/s transactional
  paceline rehearse --scenario moving --chart moving.svg
  paceline rehearse --bulk 10000 --rate 100 --burst 50 --multiplier 3 --workers 4 --kill-worker-at 10s
  paceline rehearse --limit-schedule '0s:100,15s:40,30s:150' --multiplier 3 --json
  paceline rehearse --scenarios known,unknown,moving --seeds 3      medians

Scenarios: known, unknown (ceiling three times too high), moving, outage, expired-key, quota, launch; or a TOML
file with the same words. It exits 0 only if nothing was lost, doubled or filed as failed because of timing.")]
pub(crate) struct RehearseOptions {
    /// A shipped launch or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) scenario: Option<String>,
    /// Several, one after the other
    #[arg(long, value_delimiter = ',', conflicts_with = "scenario", value_name = "NAME,NAME")]
    pub(crate) scenarios: Vec<String>,
    /// So many runs of each, with seeds that follow one another; the medians are printed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) launch: LaunchOptions,
    /// Leave the naive sender out
    #[arg(long)]
    pub(crate) no_naive: bool,
    /// Draw what happened: sent, accepted, throttled, the limit, holds and decisions
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) chart: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What differs from the scenario.
#[derive(clap::Args)]
pub(crate) struct LaunchOptions {
    /// Bulk jobs
    #[arg(long)]
    pub(crate) bulk: Option<u64>,
    /// Pushed evenly over so long
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) bulk_over: Option<f64>,
    /// Transactional jobs a second, until the bulk is through
    #[arg(long)]
    pub(crate) transactional_rate: Option<f64>,
    /// What the provider really takes a second
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// And at once
    #[arg(long)]
    pub(crate) burst: Option<u32>,
    /// The credential is configured with so many times that
    #[arg(long)]
    pub(crate) multiplier: Option<f64>,
    /// The share of requests accepted without an answer
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) unanswered: Option<f64>,
    /// From a request's arrival to its answer
    #[arg(long, value_name = "MS")]
    pub(crate) latency_ms: Option<u64>,
    /// How the limit moves: 0s:100,15s:40,30s:150
    #[arg(long, value_name = "TIME:RATE,…", value_parser = schedule)]
    pub(crate) limit_schedule: Option<Schedule>,
    /// Worker processes
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Kill one then, and start another
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) kill_worker_at: Option<f64>,
    /// Of the provider's draws
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

/// How a limit moves.
pub(crate) type Schedule = std::sync::Arc<[LimitStep]>;

/// `180s`, `3m`, `1500ms` or a plain number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];
    let unit = units.into_iter().find(|(unit, _)| text.ends_with(unit));
    let (digits, factor) =
        unit.map_or((text, 1.0), |(unit, factor)| (&text[..text.len() - unit.len()], factor));
    let number: f64 =
        digits.trim().parse().map_err(|_| "must be a time like 10s, 1500ms or 3m".to_owned())?;
    if number.is_finite() && number >= 0.0 { Ok(number * factor) } else { Err("must not be negative".into()) }
}

/// `1%` or `0.01`.
fn percent(text: &str) -> Result<f64, String> {
    let (digits, factor) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    let share =
        digits.trim().parse::<f64>().map_err(|_| "must be a share like 1% or 0.01".to_owned())? * factor;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("must be from 0% to 100%".into()) }
}

fn schedule(text: &str) -> Result<Schedule, String> {
    let step = |step: &str| {
        let (at, rate) = step.split_once(':').ok_or("must be like 0s:100,15s:40")?;
        let rate_per_s = rate.trim().parse().map_err(|_| format!("{rate:?} is not a rate a second"))?;
        Ok(LimitStep { at_s: seconds(at.trim())?, rate_per_s })
    };
    text.split(',').map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_shares_and_schedules_read_the_way_people_write_them() {
        assert_eq!(["10s", "1500ms", "3m", "7"].map(|text| seconds(text).unwrap()), [10.0, 1.5, 180.0, 7.0]);
        assert_eq!(["1%", "0.01", "100%"].map(|text| percent(text).unwrap()), [0.01, 0.01, 1.0]);
        let steps = schedule("0s:100,15s:40").unwrap();
        assert_eq!((steps.len(), steps[1].at_s, steps[1].rate_per_s), (2, 15.0, 40.0));
        assert!(["-1s", "x", ""].iter().all(|text| seconds(text).is_err()));
        assert!(percent("101%").is_err() && schedule("15s").is_err() && schedule("1s:x").is_err());
    }
}
