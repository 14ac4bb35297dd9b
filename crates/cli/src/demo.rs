//! `paceline demo`: the main job, whole, on this machine: a private Redis, a provider that says 429, worker and
//! API in this process, three classes of jobs, and the provider's own ledger for the truth.

mod launch;
mod report;

use crate::api::Api;
use crate::args::DemoOptions;
use crate::print;
use crate::private_redis::{Durability, PrivateRedis};
use crate::serve::{Parts, Running};
use crate::signals::Signals;
use anyhow::Context;
use launch::Launch;
use paceline_core::config::{Config, Sources};
use paceline_rehearsal::{Sandbox, Scenario};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Configured a fifth above what the provider takes, so that it *is* throttled.
const SETTINGS: &str = r#"
[admin]
listen = "127.0.0.1:0"

[provider.sandbox]
base_url = "{base_url}"
deduplicates = true
message_id = "body:/id"

[defaults.credential]
provider = "sandbox"
auth = "bearer"
rate = "120/s"
burst = 60

[credential.bulk-key]
secret = "file:{folder}/bulk"
[credential.lifecycle-key]
secret = "file:{folder}/lifecycle"
[credential.transactional-key]
secret = "file:{folder}/transactional"

[class.bulk]
credential = "bulk-key"
path = "/v1/send"
[class.lifecycle]
credential = "lifecycle-key"
path = "/v1/send"
[class.transactional]
credential = "transactional-key"
path = "/v1/send"
"#;

pub(crate) async fn run(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let signals = Signals::listen()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let redis = PrivateRedis::start(&folder.path().join("redis"), Durability::Everysec).await?;
    let scenario = Scenario { unanswered_share: 0.01, ..Scenario::default() };
    let sandbox = Sandbox::start(SocketAddr::from(([127, 0, 0, 1], 0)), scenario).await?;
    let config = settings(folder.path(), &sandbox.base_url(), &redis.url())?;
    let running = Running::start(config, Parts::Both, &signals).await?;
    let api = format!("http://{}", running.api.context("the demo serves the API")?);
    print::note(format_args!(
        "provider: {}  100 requests/s, burst 50 per credential, 1 % accepted without an answer\n\
         worker:   120/s, burst 60 per credential: it will be throttled\n\
         API:      {api}/v1/queues",
        sandbox.base_url()
    ));
    let began = Instant::now();
    let launch = Launch::new(Api::at(api, None)?, options.bulk, options.json);
    let launched = tokio::select! {
        launched = launch.run() => launched?,
        () = signals.stop.cancelled() => anyhow::bail!("interrupted"),
    };
    let report = report::Report::of(&launched, &sandbox.ledger(), began.elapsed());
    report.print(options.json)?;
    if options.stay {
        print::note("still serving; Ctrl-C ends it");
        signals.stop.cancelled().await;
    }
    signals.stop.cancel();
    running.until_stopped(&signals).await;
    sandbox.shutdown().await;
    redis.stop().await;
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings(folder: &Path, base_url: &str, redis_url: &str) -> anyhow::Result<Config> {
    for class in ["bulk", "lifecycle", "transactional"] {
        std::fs::write(folder.join(class), format!("demo-key-of-{class}"))?;
    }
    let text = SETTINGS.replace("{base_url}", base_url).replace("{folder}", &folder.display().to_string());
    let sources = Sources { file: Some(("demo", &text)), environment: &[] };
    let mut config =
        Config::read(sources).map_err(|faults| anyhow::anyhow!(crate::settings::told(&faults)))?;
    redis_url.clone_into(&mut config.redis.url);
    Ok(config)
}
