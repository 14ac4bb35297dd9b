//! The pace law over the whole field of providers: `cargo run --release -p paceline-core --example pacing`.

#![expect(clippy::print_stdout, reason = "it is a report")]

#[path = "../tests/pacing/simulation.rs"]
mod simulation;

use simulation::{Provider, guessed, run, tell};

/// Limits from 1 to 5,000 a second, small and large bursts, short and long ways, with and without a named wait,
/// refusals that count and that do not.
fn sweep(limits: &[f64]) -> usize {
    let mut found = 0;
    for &limit in limits {
        for burst in [1.0, limit * 0.1, limit * 0.5, limit * 2.0] {
            for latency_ms in [5, 100, 1_000, 5_000] {
                for (retry_after_s, refusals_count) in
                    [(Some(1), false), (None, false), (Some(1), true), (None, true)]
                {
                    let burst = burst.max(1.0).max(limit / 200.0);
                    let provider =
                        Provider { retry_after_s, refusals_count, latency_ms, ..Provider::new(limit, burst) };
                    let name =
                        format!("{limit}/s burst {burst} {latency_ms} ms {retry_after_s:?} {refusals_count}");
                    let jobs = ((limit * 120.0) as u64).max(2_000);
                    let most_ms = 2_000 * (jobs as f64 / limit) as u64;
                    let (run, decisions) = run(provider, guessed(limit * 3.0, burst * 3.0), jobs, 0, most_ms);
                    if run.utilisation < 0.95 || run.late_share > 0.01 {
                        tell(&name, &run, &decisions);
                        found += 1;
                    }
                }
            }
        }
    }
    found
}

fn main() {
    let found = sweep(&[1.0, 10.0, 100.0, 1_000.0, 5_000.0]);
    println!("{found} of 320 below 95 % of the limit or above 1 % throttled in the second half of their run");
}
