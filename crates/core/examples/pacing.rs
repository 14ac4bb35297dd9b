//! The pace law over the whole field of providers: `cargo run --release -p paceline-core --example pacing`.

#![expect(clippy::print_stdout, reason = "it is a report")]

#[path = "../tests/pacing/field.rs"]
mod field;
#[path = "../tests/pacing/provider.rs"]
mod provider;
#[path = "../tests/pacing/simulation.rs"]
mod simulation;

use field::{field, is_met};
use paceline_core::pace::Bounds;
use provider::Provider;
use simulation::{Load, guessed, known, run, tell};
use std::collections::BTreeMap;

/// A launch of 3,000 with 12 a second beside it, however the law's looks fall.
fn launch(name: &str, limits: &[(u64, f64)], bounds: Bounds) {
    let mut runs: Vec<_> = (0..200)
        .step_by(9)
        .map(|phase_ms| {
            let provider = Provider { limits: limits.to_vec(), phase_ms, ..Provider::new(100.0, 50.0) };
            run(provider, bounds, Load::new(3_000, 12, 120_000)).0
        })
        .collect();
    runs.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
    let (best, median, worst) = (&runs[0], &runs[runs.len() / 2], &runs[runs.len() - 1]);
    let throttled = runs.iter().map(simulation::Run::throttled_share).fold(0.0, f64::max);
    let holds: Vec<u64> = runs.iter().map(|run| run.episodes).collect();
    println!(
        "{name}: drain {:.3} in the median, {:.3} to {:.3}; at most {:.2} % throttled; holds {holds:?}",
        median.ratio,
        best.ratio,
        worst.ratio,
        100.0 * throttled
    );
}

fn main() {
    launch("known", &[(0, 100.0)], known(100.0, 50.0));
    launch("unknown", &[(0, 100.0)], guessed(300.0, 150.0));
    launch("moving", &[(0, 100.0), (15_000, 40.0), (30_000, 150.0)], guessed(300.0, 150.0));
    let entries = field(&[1.0, 10.0, 100.0, 1_000.0, 5_000.0], &[5, 100, 1_000, 5_000]);
    let middle = entries.len() / 2;
    let runs: Vec<_> = std::thread::scope(|scope| {
        let halves = [&entries[..middle], &entries[middle..]]
            .map(|half| scope.spawn(|| half.iter().map(field::Entry::run).collect::<Vec<_>>()));
        halves.into_iter().flat_map(|half| half.join().expect("a half of the field")).collect()
    });
    let mut families = BTreeMap::new();
    for (entry, (run, decisions)) in entries.iter().zip(&runs) {
        let family: &mut (u32, u32) = families.entry(entry.family()).or_default();
        family.1 += 1;
        if is_met(run) {
            family.0 += 1;
        } else {
            tell(&format!("{entry:?}"), run, decisions);
        }
    }
    for ((named, counts, latency_ms), (met, all)) in &families {
        println!("wait {named}, a refusal {counts}, {latency_ms} ms: {met} of {all}");
    }
    let met: u32 = families.values().map(|family| family.0).sum();
    println!(
        "{met} of {} at 95 % of the limit and 1 % throttled in the second half of their run",
        entries.len()
    );
}
