//! `paceline rehearse`: a launch against the sandbox, next to the same launch by a naive sender.

mod naive;
mod ours;
mod table;

use crate::args::RehearseOptions;
use crate::print;
use crate::signals::Signals;
use anyhow::{Context, bail};
use paceline_rehearsal::chart::{self, Panel};
use paceline_rehearsal::{Figures, Launch};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One rehearsed launch: what both senders came to.
struct Rehearsed {
    name: String,
    seed: u64,
    ours: Figures,
    naive: Option<Figures>,
    panels: Vec<Panel>,
}

pub(crate) async fn run(options: &RehearseOptions) -> anyhow::Result<ExitCode> {
    let signals = Signals::listen()?;
    let names = if options.scenarios.is_empty() {
        vec![options.scenario.clone().unwrap_or_else(|| "known".into())]
    } else {
        options.scenarios.clone()
    };
    let mut runs = Vec::new();
    for name in &names {
        for round in 0..options.seeds {
            let mut launch = launch(name, options)?;
            launch.seed += round;
            // The naive sender is there to compare with: once for each launch is enough.
            let compared = !options.no_naive && round == 0;
            let rehearsed = tokio::select! {
                rehearsed = rehearse(name, &launch, compared, options.json) => rehearsed?,
                () = signals.stop.cancelled() => bail!("interrupted"),
            };
            if let Some(path) = &options.chart {
                let alone = names.len() == 1 && options.seeds == 1;
                let path = if alone { path.clone() } else { beside(path, name, launch.seed) };
                std::fs::write(&path, chart::draw(&launch, &rehearsed.panels))
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            runs.push(rehearsed);
        }
    }
    told(&runs, &names, options)?;
    let kept = runs.iter().all(|run| run.ours.keeps_its_word());
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn rehearse(name: &str, launch: &Launch, compared: bool, quiet: bool) -> anyhow::Result<Rehearsed> {
    if !quiet {
        print::note(format_args!(
            "{name} (seed {}): {} bulk, {}/s transactional; the provider takes {}/s, burst {}; configured {}/s; {} worker(s)",
            launch.seed,
            launch.bulk,
            launch.transactional_rate,
            launch.rate,
            launch.burst,
            launch.rate * launch.multiplier,
            launch.workers,
        ));
    }
    let (ours, our_panel) = ours::run(launch, quiet).await?;
    let mut panels = vec![Panel { title: format!("Paceline: {name}"), ..our_panel }];
    let mut naive = None;
    if compared {
        let (figures, panel) = naive::run(launch, quiet).await?;
        naive = Some(figures);
        panels.push(Panel { title: "naive sender".into(), ..panel });
    }
    Ok(Rehearsed { name: name.to_owned(), seed: launch.seed, ours, naive, panels })
}

/// `chart.svg` of several runs: `chart-moving-7.svg`.
fn beside(path: &Path, name: &str, seed: u64) -> PathBuf {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name =
        Path::new(name).file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!("{stem}-{name}-{seed}.svg"))
}

/// The named launch, or a file, with what the options say on top.
fn launch(name: &str, options: &RehearseOptions) -> anyhow::Result<Launch> {
    let mut launch = match Launch::shipped(name) {
        Some(launch) => launch,
        None => {
            let text = std::fs::read_to_string(name).with_context(|| {
                let names: Vec<&str> = Launch::names().collect();
                format!("{name:?} is neither a file nor one of {}", names.join(", "))
            })?;
            Launch::from_toml(&text).with_context(|| name.to_owned())?
        }
    };
    let set = &options.launch;
    launch.bulk = set.bulk.unwrap_or(launch.bulk);
    launch.bulk_over_s = set.bulk_over.unwrap_or(launch.bulk_over_s);
    launch.transactional_rate = set.transactional_rate.unwrap_or(launch.transactional_rate);
    launch.rate = set.rate.unwrap_or(launch.rate);
    launch.burst = set.burst.unwrap_or(launch.burst);
    launch.multiplier = set.multiplier.unwrap_or(launch.multiplier);
    launch.known = if set.multiplier.is_some() { launch.multiplier <= 1.0 } else { launch.known };
    launch.unanswered = set.unanswered.unwrap_or(launch.unanswered);
    launch.latency_ms = set.latency_ms.unwrap_or(launch.latency_ms);
    launch.workers = set.workers.unwrap_or(launch.workers);
    launch.kill_worker_at_s = set.kill_worker_at.or(launch.kill_worker_at_s);
    launch.seed = set.seed.unwrap_or(launch.seed);
    if let Some(schedule) = &set.limit_schedule {
        launch.limit_schedule = schedule.to_vec();
        if let Some(first) = launch.limit_schedule.iter().find(|step| step.at_s == 0.0) {
            launch.rate = first.rate_per_s;
        }
        launch.limit_schedule.retain(|step| step.at_s > 0.0);
    }
    launch.check().map_err(|fault| anyhow::anyhow!("{fault}"))?;
    Ok(launch)
}

fn told(runs: &[Rehearsed], names: &[String], options: &RehearseOptions) -> anyhow::Result<()> {
    if let [run] = runs {
        return if options.json { print::json(&one(run)) } else { table::beside(run) };
    }
    let medians: Vec<(&String, Figures, Option<&Figures>)> = names
        .iter()
        .map(|name| {
            let of: Vec<&Rehearsed> = runs.iter().filter(|run| run.name == *name).collect();
            let ours: Vec<Figures> = of.iter().map(|run| run.ours.clone()).collect();
            (name, Figures::median(&ours), of.iter().find_map(|run| run.naive.as_ref()))
        })
        .collect();
    if !options.json {
        return table::medians(&medians);
    }
    let medians: Vec<Value> = medians
        .iter()
        .map(|(name, ours, naive)| json!({ "scenario": name, "paceline": ours, "naive": naive }))
        .collect();
    print::json(&json!({ "medians": medians, "runs": runs.iter().map(one).collect::<Vec<_>>() }))
}

fn one(run: &Rehearsed) -> Value {
    json!({ "scenario": run.name, "seed": run.seed, "paceline": run.ours, "naive": run.naive })
}
