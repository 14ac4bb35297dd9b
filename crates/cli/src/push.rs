//! `paceline push`

use crate::api::Api;
use crate::args::PushOptions;
use crate::print;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

/// Lines per request: enough to be quick, little enough to repeat.
const LINES: usize = 1_000;
/// Faults that are printed before only their number is.
const TOLD: usize = 20;

pub(crate) async fn run(config: Option<&Path>, options: &PushOptions) -> anyhow::Result<ExitCode> {
    let api = Api::new(config, &options.api)?;
    match &options.file {
        Some(file) => many(&api, file, options.api.json).await,
        None => one(&api, options).await,
    }
}

async fn one(api: &Api, options: &PushOptions) -> anyhow::Result<ExitCode> {
    let payload = options.payload.as_deref().unwrap_or("null");
    let payload: Value = serde_json::from_str(payload).context("payload: must be JSON")?;
    let mut job =
        Map::from_iter([("class".to_owned(), json!(options.class)), ("payload".to_owned(), payload)]);
    let mut set = |name: &str, value: Option<Value>| value.map(|value| job.insert(name.to_owned(), value));
    set("key", options.key.clone().map(Value::from));
    set("not_before", options.not_before.clone().map(Value::from));
    set("expires_at", options.expires_at.clone().map(Value::from));
    set("tags", options.campaign.as_ref().map(|campaign| json!({ "campaign": campaign })));
    set("request", options.path.as_ref().map(|path| json!({ "path": path })));
    let answer = api.post("/v1/jobs", &Value::Object(job)).await?;
    if options.api.json {
        print::json(&answer)?;
    } else {
        let result = answer["results"].get(0).unwrap_or(&answer);
        let text = |field: &str| result[field].as_str().unwrap_or_default().to_owned();
        print::line(format_args!("{} {}/{} {}", text("status"), text("class"), text("key"), text("state")));
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of the lines so far.
#[derive(Default, serde::Serialize)]
struct Tally {
    lines: u64,
    created: u64,
    duplicate: u64,
    conflict: u64,
    invalid: u64,
}

async fn many(api: &Api, file: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let (reader, bytes): (Box<dyn AsyncBufRead + Unpin>, u64) = if file == Path::new("-") {
        (Box::new(BufReader::new(tokio::io::stdin())), 0)
    } else {
        let opened =
            tokio::fs::File::open(file).await.with_context(|| format!("cannot open {}", file.display()))?;
        let bytes = opened.metadata().await?.len();
        (Box::new(BufReader::new(opened)), bytes)
    };
    let bar = progress(bytes);
    let mut tally = Tally::default();
    let mut lines = reader.split(b'\n');
    let mut chunk = Vec::new();
    let mut in_chunk = 0;
    loop {
        let line = lines.next_segment().await?;
        let ended = line.is_none();
        if let Some(line) = line.filter(|line| !line.trim_ascii().is_empty()) {
            bar.inc(line.len() as u64 + 1);
            chunk.extend(line);
            chunk.push(b'\n');
            in_chunk += 1;
        }
        if in_chunk == LINES || (ended && in_chunk > 0) {
            send(api, std::mem::take(&mut chunk), &mut tally, &bar).await?;
            in_chunk = 0;
        }
        if ended {
            break;
        }
    }
    bar.finish_and_clear();
    if json {
        print::json(&tally)?;
    } else {
        print::line(format_args!(
            "{} lines: {} created, {} duplicate, {} conflict, {} invalid",
            tally.lines, tally.created, tally.duplicate, tally.conflict, tally.invalid
        ));
    }
    Ok(if tally.conflict + tally.invalid == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn send(api: &Api, chunk: Vec<u8>, tally: &mut Tally, bar: &ProgressBar) -> anyhow::Result<()> {
    let answer = api.post_lines("/v1/jobs", chunk).await?;
    let count = |field: &str| answer[field].as_u64().unwrap_or(0);
    let results = answer["results"].as_array().map_or(&[][..], Vec::as_slice);
    for result in results
        .iter()
        .filter(|result| ["invalid", "conflict"].contains(&result["status"].as_str().unwrap_or("")))
    {
        let told = tally.conflict + tally.invalid;
        if told < TOLD as u64 {
            let line = tally.lines + result["index"].as_u64().unwrap_or(0) + 1;
            let problem = match result["error"]["field"].as_str() {
                Some(field) => {
                    format!("{field}: {}", result["error"]["problem"].as_str().unwrap_or_default())
                }
                None => format!("{} has other content under this key", result["key"]),
            };
            bar.suspend(|| print::note(format_args!("line {line}: {problem}")));
        }
    }
    tally.created += count("created");
    tally.duplicate += count("duplicate");
    tally.conflict += count("conflict");
    tally.invalid += count("invalid");
    tally.lines += results.len() as u64;
    Ok(())
}

fn progress(bytes: u64) -> ProgressBar {
    let style = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    let bar = if bytes > 0 { ProgressBar::new(bytes) } else { ProgressBar::new_spinner() };
    bar.with_style(ProgressStyle::with_template(style).expect("a constant template is valid"))
}
