//! `paceline reconcile`: records against indexes, the whole walk at once.

use crate::args::ReconcileOptions;
use crate::{print, settings};
use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use paceline_core::State;
use paceline_store::{ClassRef, RedisStore, Store, Walk};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// One job that stood wrong.
#[derive(Debug, Serialize)]
struct Wrong {
    class: String,
    key: String,
    found_in: Vec<&'static str>,
    /// Empty: in no index.
    belongs_in: &'static str,
}

/// What a walk found.
#[derive(Debug, Serialize)]
struct Report {
    examined: usize,
    mended: bool,
    wrong: Vec<Wrong>,
}

pub(crate) async fn run(path: Option<&Path>, options: &ReconcileOptions) -> anyhow::Result<ExitCode> {
    let mut config = settings::load(path)?;
    if let Some(url) = &options.redis {
        config.redis.url.clone_from(url);
    }
    if config.redis.url.is_empty() {
        bail!("redis.url is not set: name the Redis to walk through, in the settings or by --redis");
    }
    let timeout = Duration::from_millis(config.redis.response_timeout_ms);
    let store = RedisStore::open(&config.redis.url, config.namespace.clone(), timeout)?;
    let mut report = Report { examined: 0, mended: !options.dry_run, wrong: Vec::new() };
    for class in config.classes.values() {
        walk(&store, &ClassRef::of(&config, class), &mut report).await?;
    }
    let found = !report.wrong.is_empty();
    show(&report, options.json)?;
    Ok(if found && options.dry_run { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

async fn walk(store: &RedisStore, class: &ClassRef, report: &mut Report) -> anyhow::Result<()> {
    let jobs: u64 = store.depths(class).await?.counts.iter().sum();
    let style = ProgressStyle::with_template("{prefix:16} {bar:40} {human_pos}/{human_len} {eta}")
        .expect("a constant template is valid");
    let bar = ProgressBar::new(jobs).with_style(style).with_prefix(class.class.to_string());
    let mut next = Some(Walk::START);
    while let Some(at) = next {
        let step = store.reconcile_step(class, &at, report.mended).await?;
        report.examined += step.examined;
        bar.inc(step.examined as u64);
        report.wrong.extend(step.wrong.into_iter().map(|(key, found, target)| Wrong {
            class: class.class.to_string(),
            key,
            found_in: found.into_iter().map(State::as_str).collect(),
            belongs_in: target.map_or("", State::as_str),
        }));
        next = step.next;
    }
    bar.finish_and_clear();
    Ok(())
}

fn show(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        return print::json(report);
    }
    if report.wrong.is_empty() {
        print::line(format_args!("{} jobs looked at: records and indexes agree", report.examined));
        return Ok(());
    }
    let rows = report.wrong.iter().map(|wrong| {
        vec![wrong.class.clone(), wrong.key.clone(), wrong.found_in.join(" "), wrong.belongs_in.to_owned()]
    });
    print::table(&["class", "key", "found in", "belongs in"], rows.collect());
    let done = if report.mended { "put right" } else { "stand wrong; without --dry-run they are put right" };
    print::line(format_args!("{} jobs looked at, {} {done}", report.examined, report.wrong.len()));
    Ok(())
}
