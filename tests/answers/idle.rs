//! What an idle worker costs Redis.

use crate::support::*;
use paceline_tests::stage::Stage;
use std::fmt::Write;
use std::time::Duration;

/// As shipped: no times of a test's own.
const SETTINGS: &str = r#"
namespace = "t"
deployment_id = "00000000-0000-4000-8000-000000000007"
[provider.sandbox]
base_url = "{base_url}"
deduplicates = true
[credential.key]
provider = "sandbox"
"#;

/// What clients asked; what scripts do inside is not counted.
fn commands(stage: &Stage) -> u64 {
    let info: String =
        redis::cmd("INFO").arg("commandstats").query(&mut stage.redis.connection()).expect("it runs");
    let calls = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.and_then(|rest| rest.split(',').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    ["evalsha", "eval", "blpop"].into_iter().map(calls).sum()
}

/// Ten idle classes cost a few commands a second together, and each is woken by a push all the same.
#[tokio::test]
async fn ten_idle_classes_cost_a_few_commands_a_second_together() {
    let mut settings = SETTINGS.to_owned();
    for index in 0..10 {
        let _ = writeln!(settings, "[class.c{index}]\ncredential = \"key\"\ngroup = \"account\"");
    }
    let stage = Stage::new(wide(), &settings).await;
    let worker = stage.worker();
    stage.push("c0", 1).await;
    stage.await_count("c0", paceline_core::State::Submitted, 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = commands(&stage);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let cost = commands(&stage) - before;
    assert!(cost < 60, "{cost} commands in four seconds");
    stage.push("c9", 1).await;
    stage.await_count("c9", paceline_core::State::Submitted, 1).await;
    worker.stopped().await;
}
