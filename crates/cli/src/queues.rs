//! `paceline queues`, `pause` and `resume`

use crate::api::{Api, escaped};
use crate::args::{PauseOptions, ReadOptions, ResumeOptions};
use crate::get::plain;
use crate::print;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

const COUNTS: [&str; 10] = [
    "queued",
    "scheduled",
    "pending",
    "in_flight",
    "submitted",
    "failed",
    "deferred",
    "unconfirmed",
    "expired",
    "cancelled",
];

pub(crate) async fn run(config: Option<&Path>, options: &ReadOptions) -> anyhow::Result<ExitCode> {
    let answer = Api::new(config, &options.api)?.get("/v1/queues", &[]).await?;
    if options.api.json {
        print::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let queues = answer["queues"].as_array().or_else(|| answer.as_array()).cloned().unwrap_or_default();
    let header: Vec<&str> = [&["class"], &COUNTS[..], &["oldest due", "held by"]].concat();
    print::table(&header, queues.iter().map(row).collect());
    Ok(ExitCode::SUCCESS)
}

fn row(queue: &Value) -> Vec<String> {
    let mut row = vec![plain(&queue["class"])];
    row.extend(COUNTS.map(|count| plain(&queue[count])));
    row.push(queue["oldest_due_age_ms"].as_u64().map_or_else(String::new, print::span));
    let budgets = queue["budgets"].as_array().map_or(&[][..], Vec::as_slice);
    let holds: Vec<String> = std::iter::once(queue)
        .chain(budgets)
        .filter_map(|held| held["hold"]["cause"].as_str())
        .map(str::to_owned)
        .collect();
    row.push(holds.join(" "));
    row
}

pub(crate) async fn pause(config: Option<&Path>, options: &PauseOptions) -> anyhow::Result<ExitCode> {
    let path = format!("/v1/queues/{}/pause", escaped(&options.class));
    let answer = Api::new(config, &options.api)?.post(&path, &json!({ "for_s": options.for_s })).await?;
    told(options.api.json, &answer, format_args!("{} is paused", options.class))
}

pub(crate) async fn resume(config: Option<&Path>, options: &ResumeOptions) -> anyhow::Result<ExitCode> {
    let kind = if options.budget { "budgets" } else { "queues" };
    let path = format!("/v1/{kind}/{}/resume", escaped(&options.name));
    let answer = Api::new(config, &options.api)?.post(&path, &json!({})).await?;
    told(options.api.json, &answer, format_args!("{} is resumed", options.name))
}

fn told(json: bool, answer: &Value, text: std::fmt::Arguments<'_>) -> anyhow::Result<ExitCode> {
    if json {
        print::json(answer)?;
    } else {
        print::line(text);
    }
    Ok(ExitCode::SUCCESS)
}
