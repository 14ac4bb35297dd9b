//! `paceline budget`, `explain` and `alerts`

use crate::api::{Api, escaped};
use crate::args::{BudgetCommand, BudgetNameOptions, BudgetSetOptions, ExplainOptions, ReadOptions};
use crate::get::plain;
use crate::print;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

pub(crate) async fn run(config: Option<&Path>, command: &BudgetCommand) -> anyhow::Result<ExitCode> {
    match command {
        BudgetCommand::Ls(options) => list(config, options).await,
        BudgetCommand::Show(options) => show(config, options).await,
        BudgetCommand::Set(options) => set(config, options).await,
        BudgetCommand::Unset(options) => unset(config, options).await,
    }
}

fn path(name: &str) -> String {
    format!("/v1/budgets/{}", escaped(name))
}

async fn list(config: Option<&Path>, options: &ReadOptions) -> anyhow::Result<ExitCode> {
    let answer = Api::new(config, &options.api)?.get("/v1/budgets", &[]).await?;
    if options.api.json {
        print::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let header =
        ["budget", "pace/s", "ceiling/s", "burst", "used", "throttled", "quotas", "held by", "limits by"];
    let budgets = answer["budgets"].as_array().map_or(&[][..], Vec::as_slice);
    print::table(&header, budgets.iter().map(row).collect());
    Ok(ExitCode::SUCCESS)
}

fn row(budget: &Value) -> Vec<String> {
    let quotas = budget["quotas"].as_array().map_or(&[][..], Vec::as_slice);
    let quota = |quota: &Value| format!("{} {}", percent(&quota["share"]), plain(&quota["quota"]));
    vec![
        plain(&budget["name"]),
        number(&budget["pace_per_s"]),
        number(&budget["ceiling_per_s"]),
        number(&budget["pace_burst"]),
        percent(&budget["utilisation"]),
        plain(&budget["throttled"]),
        quotas.iter().map(quota).collect::<Vec<_>>().join(", "),
        budget["hold"]["cause"].as_str().unwrap_or_default().to_owned(),
        budget["limits_by"].as_str().unwrap_or("configuration").to_owned(),
    ]
}

fn number(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |number| {
        if number >= 10.0 { format!("{number:.0}") } else { format!("{number:.2}") }
    })
}

fn percent(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |share| format!("{:.0} %", share * 100.0))
}

async fn show(config: Option<&Path>, options: &BudgetNameOptions) -> anyhow::Result<ExitCode> {
    let api = Api::new(config, &options.api)?;
    let budget = api.get(&path(&options.name), &[]).await?;
    let decisions = api.get(&format!("{}/decisions", path(&options.name)), &[("limit", "20".into())]).await?;
    if options.api.json {
        print::json(&json!({ "budget": budget, "decisions": decisions["decisions"] }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let header =
        ["budget", "pace/s", "ceiling/s", "burst", "used", "throttled", "quotas", "held by", "limits by"];
    print::table(&header, vec![row(&budget)]);
    let decisions = decisions["decisions"].as_array().map_or(&[][..], Vec::as_slice);
    if decisions.is_empty() {
        print::line("its pace was never changed");
        return Ok(ExitCode::SUCCESS);
    }
    let lines = decisions.iter().map(|decision| vec![plain(&decision["at"]), plain(&decision["cause"])]);
    print::table(&["at", "decision"], lines.collect());
    Ok(ExitCode::SUCCESS)
}

async fn set(config: Option<&Path>, options: &BudgetSetOptions) -> anyhow::Result<ExitCode> {
    let body = json!({
        "rate": options.rate, "burst": options.burst, "floor": options.floor, "max_in_flight": options.max_in_flight,
    });
    let answer = Api::new(config, &options.api)?.put(&path(&options.name), &body).await?;
    changed(options.api.json, &answer)
}

async fn unset(config: Option<&Path>, options: &BudgetNameOptions) -> anyhow::Result<ExitCode> {
    let answer = Api::new(config, &options.api)?.delete(&path(&options.name)).await?;
    changed(options.api.json, &answer)
}

fn changed(json: bool, answer: &Value) -> anyhow::Result<ExitCode> {
    if json {
        print::json(answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    print::line(format_args!(
        "{}: ceiling {}/s, pace {}/s, burst {}",
        plain(&answer["name"]),
        number(&answer["ceiling_per_s"]),
        number(&answer["pace_per_s"]),
        number(&answer["pace_burst"]),
    ));
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn explain(config: Option<&Path>, options: &ExplainOptions) -> anyhow::Result<ExitCode> {
    let query: Vec<(&str, String)> = options.key.iter().map(|key| ("key", key.clone())).collect();
    let path = format!("/v1/queues/{}/explain", escaped(&options.class));
    let answer = Api::new(config, &options.api)?.get(&path, &query).await?;
    if options.api.json {
        print::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let what =
        options.key.as_ref().map_or_else(|| options.class.clone(), |key| format!("{} {key}", options.class));
    print::line(format_args!("{what}: {}", plain(&answer["words"])));
    if let Some(earliest) = answer["earliest"].as_str() {
        print::line(format_args!("at the earliest: {earliest}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Exit 3 where something stands, so that a script can tell.
pub(crate) async fn alerts(config: Option<&Path>, options: &ReadOptions) -> anyhow::Result<ExitCode> {
    let answer = Api::new(config, &options.api)?.get("/v1/alerts", &[]).await?;
    let alerts = answer["alerts"].as_array().map_or(&[][..], Vec::as_slice);
    if options.api.json {
        print::json(&answer)?;
    } else if alerts.is_empty() {
        print::line("nothing that a person should look at");
    } else {
        let row = |alert: &Value| vec![plain(&alert["kind"]), plain(&alert["on"]), plain(&alert["words"])];
        print::table(&["alert", "on", "what"], alerts.iter().map(row).collect());
    }
    Ok(if alerts.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
