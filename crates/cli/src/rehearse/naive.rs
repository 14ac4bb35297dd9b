//! The same launch by a naive sender, on a sandbox of its own.

use super::ours::{change, now_us};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_rehearsal::chart::Panel;
use paceline_rehearsal::figures::SenderEnd;
use paceline_rehearsal::naive::{self, Post};
use paceline_rehearsal::{Figures, Launch, Sandbox};
use std::net::SocketAddr;
use std::time::Duration;

/// One message by HTTP, without an idempotency key.
#[derive(Clone)]
struct ByHttp {
    client: reqwest::Client,
    url: String,
}

impl Post for ByHttp {
    async fn post(&self, key: &str) -> bool {
        let body = serde_json::json!({ "key": key, "to": "ada@example.org", "template": "welcome" });
        let sent = self.client.post(&self.url).bearer_auth("rehearsal").json(&body).send().await;
        sent.is_ok_and(|answer| answer.status().is_success())
    }
}

pub(super) async fn run(launch: &Launch, quiet: bool) -> anyhow::Result<(Figures, Panel)> {
    let sandbox = Sandbox::start(SocketAddr::from(([127, 0, 0, 1], 0)), launch.scenario()).await?;
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
    let post = ByHttp { client, url: format!("{}/v1/send", sandbox.base_url()) };
    let most = Duration::from_secs_f64(launch.physical_s() * 3.0 + 60.0);
    let began_us = now_us();
    let bar = ProgressBar::new_spinner().with_message("the naive sender tries the same");
    bar.set_draw_target(if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() });
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a constant template is valid"),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    let end = tokio::select! {
        end = naive::send(launch, post, now_us, most) => end,
        error = change(launch, &sandbox) => return Err(error),
    };
    bar.finish_and_clear();
    let ledger = sandbox.shutdown().await;
    let told = SenderEnd {
        began_us,
        pushed: end.pushed,
        ended_us: now_us(),
        filed: &end.failed,
        left: end.left,
        pushed_at_us: &end.pushed_at_us,
        ..SenderEnd::default()
    };
    let figures = Figures::of(launch, &ledger, &told);
    let began_s = began_us as f64 / 1e6;
    Ok((figures, Panel { began_s, timeline: ledger.timeline, ..Panel::default() }))
}
