//! `paceline get`

use crate::api::{Api, escaped};
use crate::args::GetOptions;
use crate::print;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;

pub(crate) async fn run(config: Option<&Path>, options: &GetOptions) -> anyhow::Result<ExitCode> {
    let api = Api::new(config, &options.api)?;
    let raw = if options.raw { vec![("raw", "1".to_owned())] } else { Vec::new() };
    let path = format!("/v1/jobs/{}/{}", escaped(&options.class), escaped(&options.key));
    let job = api.get(&path, &raw).await?;
    if options.api.json {
        print::json(&job)?;
        return Ok(ExitCode::SUCCESS);
    }
    let fields: Vec<Vec<String>> = job
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| *name != "attempts" && !name.ends_with("_ms") && !plain(value).is_empty())
        .map(|(name, value)| vec![name.clone(), plain(value)])
        .collect();
    print::table(&["field", "value"], fields);
    let attempts = job["attempts"].as_array().map_or(&[][..], Vec::as_slice);
    let columns = ["at", "code", "outcome", "reason", "rule", "latency_ms", "message_id"];
    let rows =
        attempts.iter().map(|attempt| columns.map(|column| plain(&attempt[column])).to_vec()).collect();
    print::table(&columns, rows);
    Ok(ExitCode::SUCCESS)
}

/// A value as people read it: texts without quotes, nothing for null.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
