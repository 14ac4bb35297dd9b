//! `paceline dlq ls` and `replay`

use crate::api::Api;
use crate::args::{DlqCommand, DlqConfirmOptions, DlqFilter, DlqListOptions, DlqReplayOptions};
use crate::get::plain;
use crate::print;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;

pub(crate) async fn run(config: Option<&Path>, command: &DlqCommand) -> anyhow::Result<ExitCode> {
    match command {
        DlqCommand::Ls(options) => list(&Api::new(config, &options.api)?, options).await,
        DlqCommand::Replay(options) => replay(&Api::new(config, &options.api)?, options).await,
        DlqCommand::Confirm(options) => confirm(&Api::new(config, &options.api)?, options).await,
    }
}

fn filter(filter: &DlqFilter) -> Vec<(&'static str, String)> {
    let state = filter.state.map(|state| ("state", state.to_string()));
    let reason = filter.reason.clone().map(|reason| ("reason", reason));
    let code = filter.code.clone().map(|code| ("code", code));
    [state, reason, code].into_iter().flatten().collect()
}

async fn list(api: &Api, options: &DlqListOptions) -> anyhow::Result<ExitCode> {
    let mut query = filter(&options.filter);
    query.extend(options.class.clone().map(|class| ("class", class)));
    let mut items: Vec<Value> = Vec::new();
    let mut cursor: Option<String> = None;
    while items.len() < options.limit {
        let mut page = query.clone();
        page.push(("limit", (options.limit - items.len()).min(1_000).to_string()));
        page.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let answer = api.get("/v1/dead-letters", &page).await?;
        items.extend(answer["items"].as_array().cloned().unwrap_or_default());
        cursor = answer["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    if options.api.json {
        print::json(&items)?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = ["class", "key", "state", "since", "code", "reason", "attempts"];
    let rows = items.iter().map(|item| columns.map(|column| plain(&item[column])).to_vec()).collect();
    print::table(&columns, rows);
    if cursor.is_some() {
        print::note("there are more; raise --limit");
    }
    Ok(ExitCode::SUCCESS)
}

/// The numbers of a replay, added up over its calls.
const NUMBERS: [&str; 7] =
    ["examined", "matched", "replayed", "needs_confirmation", "moved", "missing", "expired"];

async fn replay(api: &Api, options: &DlqReplayOptions) -> anyhow::Result<ExitCode> {
    let mut body = json!({
        "class": options.class,
        "dry_run": options.dry_run,
        "accept_duplicates": options.accept_duplicates,
    });
    for (name, value) in filter(&options.filter) {
        body[name] = value.into();
    }
    if !options.keys.is_empty() {
        body["keys"] = json!(options.keys);
    }
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a constant template is valid");
    let bar = ProgressBar::new_spinner().with_style(style);
    let mut sums: Map<String, Value> = NUMBERS.iter().map(|&number| (number.to_owned(), 0.into())).collect();
    loop {
        let answer = api.post("/v1/replays", &body).await?;
        for number in NUMBERS {
            let sum = sums[number].as_u64().unwrap_or(0) + answer[number].as_u64().unwrap_or(0);
            sums.insert(number.to_owned(), sum.into());
        }
        bar.set_message(format!("{} examined, {} replayed", sums["examined"], sums["replayed"]));
        bar.tick();
        match answer["next_cursor"].as_str() {
            Some(cursor) => body["cursor"] = cursor.into(),
            None => break,
        }
    }
    bar.finish_and_clear();
    if options.api.json {
        print::json(&sums)?;
        return Ok(ExitCode::SUCCESS);
    }
    print::table(&NUMBERS, vec![NUMBERS.map(|number| sums[number].to_string()).to_vec()]);
    if sums["needs_confirmation"].as_u64() > Some(0) {
        print::note(
            "some may have been accepted and would go out twice; --accept-duplicates replays them too",
        );
    }
    Ok(ExitCode::SUCCESS)
}

async fn confirm(api: &Api, options: &DlqConfirmOptions) -> anyhow::Result<ExitCode> {
    let outcome = if options.accepted { "accepted" } else { "not_accepted" };
    let mut body = json!({ "class": options.class, "keys": options.keys, "outcome": outcome });
    if let Some(id) = &options.message_id {
        body["message_id"] = id.clone().into();
    }
    let answer = api.post("/v1/confirmations", &body).await?;
    if options.api.json {
        print::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = ["key", "status", "state"];
    let rows = answer["results"].as_array().into_iter().flatten();
    print::table(&columns, rows.map(|row| columns.map(|column| plain(&row[column])).to_vec()).collect());
    Ok(ExitCode::SUCCESS)
}
