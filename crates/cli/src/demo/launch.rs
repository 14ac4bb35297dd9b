//! Pushes three classes over the API the way producers do, and watches until nothing waits any more.

use crate::api::Api;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, MissedTickBehavior};

/// One transactional job every so often.
const EVERY: Duration = Duration::from_millis(100);
/// How often the depths are read.
const WATCH: Duration = Duration::from_millis(200);
/// A drain that takes longer than this has something to tell: the table is printed as it is.
const PATIENCE: Duration = Duration::from_secs(240);

/// What is pushed, and the bars that show what became of it.
pub(super) struct Launch {
    api: Api,
    bulk: usize,
    bars: BTreeMap<&'static str, ProgressBar>,
}

/// What was pushed when, and where everything is at the end.
pub(super) struct Launched {
    /// Pushed jobs per class.
    pub(super) pushed: BTreeMap<&'static str, u64>,
    /// Key of each transactional job → when its push began, in µs since the epoch.
    pub(super) pushed_at_us: BTreeMap<String, u64>,
    /// The depths at the end, per class.
    pub(super) queues: Vec<Value>,
}

impl Launch {
    pub(super) fn new(api: Api, bulk: usize, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let all = MultiProgress::with_draw_target(target);
        let style = ProgressStyle::with_template("{prefix:>13} {bar:40} {pos:>5}/{len:<5} {msg}")
            .expect("a constant template is valid");
        let bars = ["transactional", "lifecycle", "bulk"]
            .map(|class| (class, all.add(ProgressBar::new(0)).with_style(style.clone()).with_prefix(class)));
        Self { api, bulk, bars: bars.into() }
    }

    /// Pushes everything, then waits until no class has anything waiting or in flight.
    pub(super) async fn run(self) -> anyhow::Result<Launched> {
        let mut pushed = BTreeMap::new();
        for (class, jobs) in [("bulk", self.bulk), ("lifecycle", self.bulk / 6)] {
            self.push_many(class, jobs).await?;
            self.bars[class].set_length(jobs as u64);
            pushed.insert(class, jobs as u64);
        }
        let mut pushed_at_us = BTreeMap::new();
        let mut every = tokio::time::interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch = tokio::time::interval(WATCH);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let began = Instant::now();
        let mut draining = false;
        loop {
            tokio::select! {
                _ = every.tick(), if !draining => self.push_transactional(&mut pushed_at_us).await?,
                _ = watch.tick() => {
                    let queues = self.watch().await?;
                    let open = |classes: &[&str]| queues.iter().filter(|queue| classes.contains(&class_of(queue)))
                        .map(|queue| number(queue, "waiting") + number(queue, "in_flight")).sum::<u64>();
                    // Transactional jobs keep coming for as long as the others drain.
                    draining = draining || open(&["bulk", "lifecycle"]) == 0;
                    let all_out = draining && open(&["transactional"]) == 0;
                    if all_out || began.elapsed() > PATIENCE {
                        self.bars.values().for_each(ProgressBar::finish);
                        pushed.insert("transactional", pushed_at_us.len() as u64);
                        return Ok(Launched { pushed, pushed_at_us, queues });
                    }
                }
            }
        }
    }

    async fn push_many(&self, class: &str, jobs: usize) -> anyhow::Result<()> {
        let indexes: Vec<usize> = (0..jobs).collect();
        for chunk in indexes.chunks(500) {
            let jobs: Vec<Value> =
                chunk.iter().map(|index| job(class, &format!("{class}:{index}"))).collect();
            self.api.post("/v1/jobs", &json!(jobs)).await?;
        }
        Ok(())
    }

    async fn push_transactional(&self, pushed_at_us: &mut BTreeMap<String, u64>) -> anyhow::Result<()> {
        let key = format!("transactional:{}", pushed_at_us.len());
        let job = job("transactional", &key);
        pushed_at_us.insert(key, now_us());
        self.api.post("/v1/jobs", &job).await?;
        self.bars["transactional"].set_length(pushed_at_us.len() as u64);
        Ok(())
    }

    async fn watch(&self) -> anyhow::Result<Vec<Value>> {
        let answer = self.api.get("/v1/queues", &[]).await?;
        let queues = answer["queues"].as_array().cloned().unwrap_or_default();
        for queue in &queues {
            let Some(bar) = self.bars.get(class_of(queue)) else { continue };
            bar.set_position(number(queue, "submitted"));
            let held =
                queue["budgets"][0]["hold"]["cause"].as_str().map_or("", |_| "  throttled: waiting as asked");
            bar.set_message(format!("{} in flight{held}", number(queue, "in_flight")));
        }
        Ok(queues)
    }
}

fn job(class: &str, key: &str) -> Value {
    json!({ "class": class, "key": key, "payload": { "key": key, "to": "ada@example.org", "template": "welcome" } })
}

pub(super) fn class_of(queue: &Value) -> &str {
    queue["class"].as_str().unwrap_or_default()
}

pub(super) fn number(queue: &Value, field: &str) -> u64 {
    queue[field].as_u64().unwrap_or(0)
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
