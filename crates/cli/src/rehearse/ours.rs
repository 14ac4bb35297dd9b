//! Paceline's part: a private Redis, the sandbox, the API in this process, and the workers as processes of their own,
//! so that one of them can be killed.

use crate::api::Api;
use crate::private_redis::{Durability, PrivateRedis};
use crate::serve::{Parts, Running};
use crate::settings;
use crate::signals::Signals;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_core::config::{Config, Sources};
use paceline_rehearsal::chart::Panel;
use paceline_rehearsal::figures::SenderEnd;
use paceline_rehearsal::{Figures, Launch, Sandbox};
use paceline_store::{ClassRef, Cursor, Depths, PaceDecision, RedisStore, Store};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// One account: transactional before bulk, the limit as it is believed to be.
const SETTINGS: &str = r#"
deployment_id = "00000000-0000-4000-8000-00000000007e"
[admin]
listen = "127.0.0.1:0"
[redis]
url = "{redis_url}"
[worker]
grace_ms = 5000
[provider.sandbox]
base_url = "{base_url}"
deduplicates = true
message_id = "body:/id"
[credential.key]
provider = "sandbox"
auth = "bearer"
secret = "file:{folder}/key"
rate = "{rate}/s"
burst = {burst}
start = "{start}"
[class.bulk]
credential = "key"
group = "account"
path = "/v1/send"
[class.transactional]
credential = "key"
group = "account"
path = "/v1/send"
"#;

/// How often depths and holds are looked at.
const WATCH: Duration = Duration::from_millis(20);

pub(super) async fn run(launch: &Launch, quiet: bool) -> anyhow::Result<(Figures, Panel)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let redis = PrivateRedis::start(&folder.path().join("redis"), Durability::Everysec).await?;
    let sandbox = Sandbox::start(SocketAddr::from(([127, 0, 0, 1], 0)), launch.scenario()).await?;
    let text = settings_of(launch, folder.path(), &sandbox.base_url(), &redis.url());
    let file = folder.path().join("paceline.toml");
    std::fs::write(&file, &text)?;
    std::fs::write(folder.path().join("key"), "rehearsal")?;
    let config = Config::read(Sources { file: Some(("rehearsal", &text)), environment: &[] })
        .map_err(|faults| anyhow::anyhow!(settings::told(&faults)))?;
    let at = Classes { bulk: class(&config, "bulk")?, transactional: class(&config, "transactional")? };
    let signals = Signals::default();
    let running = Running::start(config, Parts::Admin, &signals).await?;
    let base = format!("http://{}", running.api.context("the API listens")?);
    let (api, urgent_api) = (Api::at(base.clone(), None)?, Api::at(base, None)?);
    let mut workers = Workers::start(launch, &file)?;
    // The provider's schedule begins with the launch, not with the start of its server.
    sandbox.reset();
    let began_us = now_us();
    let urgent = Urgent::start(launch, urgent_api);
    let watched = tokio::select! {
        watched = watch(launch, &running.store, &at, api, urgent, quiet) => watched?,
        error = change(launch, &sandbox) => return Err(error),
        error = workers.kill_one(launch, &file) => return Err(error),
    };
    let ended_us = now_us();
    let filed = filed(&running.store, &at).await?;
    let budget = running.store.pace(&at.bulk, &at.bulk.budgets[0]).await?;
    let decisions = running.store.decisions(&at.bulk, &at.bulk.budgets[0], 200).await?;
    workers.stop().await;
    signals.stop.cancel();
    running.until_stopped(&signals).await;
    let ledger = sandbox.shutdown().await;
    redis.stop().await;
    let end = SenderEnd {
        began_us,
        ended_us,
        pushed: watched.pushed,
        filed: &filed,
        left: watched.left,
        holds: budget.heard.episodes.max(watched.holds_us.len() as u64),
        held_us: watched.delayed_us,
        pushed_at_us: &watched.pushed_at_us,
    };
    let figures = Figures::of(launch, &ledger, &end);
    Ok((figures, panel(began_us, ledger.timeline, &watched.holds_us, decisions)))
}

fn settings_of(launch: &Launch, folder: &Path, base_url: &str, redis_url: &str) -> String {
    SETTINGS
        .replace("{redis_url}", redis_url)
        .replace("{base_url}", base_url)
        .replace("{folder}", &folder.display().to_string())
        .replace("{rate}", &(launch.rate * launch.multiplier).to_string())
        .replace("{burst}", &((f64::from(launch.burst) * launch.multiplier).max(1.0) as u32).to_string())
        .replace("{start}", if launch.known { "ceiling" } else { "modest" })
}

struct Classes {
    bulk: ClassRef,
    transactional: ClassRef,
}

fn class(config: &Config, name: &str) -> anyhow::Result<ClassRef> {
    let class =
        config.classes.values().find(|class| class.name.as_str() == name).context("the class is there")?;
    Ok(ClassRef::of(config, class))
}

fn panel(
    began_us: u64,
    timeline: Vec<paceline_rehearsal::ledger::LedgerSecond>,
    holds_us: &[(u64, u64)],
    decisions: Vec<PaceDecision>,
) -> Panel {
    let since = |us: u64| us.saturating_sub(began_us) as f64 / 1e6;
    Panel {
        title: String::new(),
        began_s: began_us as f64 / 1e6,
        timeline,
        holds_s: holds_us.iter().map(|(from, to)| (since(*from), since(*to))).collect(),
        decisions: decisions.into_iter().map(|one| (since(one.at_ms * 1_000), one.cause)).collect(),
    }
}

/// Worker processes; dropped, they are killed.
struct Workers(Vec<Child>);

impl Workers {
    fn start(launch: &Launch, config: &Path) -> anyhow::Result<Self> {
        (0..launch.workers).map(|_| worker(config)).collect::<anyhow::Result<_>>().map(Self)
    }

    /// Kills one at its moment and starts another; never ends otherwise.
    async fn kill_one(&mut self, launch: &Launch, config: &Path) -> anyhow::Error {
        let Some(at_s) = launch.kill_worker_at_s else { return std::future::pending().await };
        tokio::time::sleep(Duration::from_secs_f64(at_s)).await;
        let killed = async {
            self.0[0].kill().await?;
            self.0[0] = worker(config)?;
            anyhow::Ok(())
        };
        match killed.await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    }

    async fn stop(mut self) {
        for child in &self.0 {
            if let Some(pid) = child.id() {
                let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            }
        }
        for child in &mut self.0 {
            let _ = child.wait().await;
        }
    }
}

fn worker(config: &Path) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("worker").arg("--config").arg(config).stdout(Stdio::null()).kill_on_drop(true);
    if std::env::var_os("RUST_LOG").is_none() {
        command.stderr(Stdio::null());
    }
    command.spawn().context("cannot start a worker")
}

/// Changes the provider's script at its moments; never ends otherwise.
pub(super) async fn change(launch: &Launch, sandbox: &Sandbox) -> anyhow::Error {
    let began = Instant::now();
    for event in &launch.events {
        tokio::time::sleep_until(began + Duration::from_secs_f64(event.at_s)).await;
        let mut set = event.set.clone();
        if let Value::Object(fields) = &mut set {
            fields.values_mut().filter(|value| **value == "").for_each(|value| *value = Value::Null);
        }
        let changed = sandbox.scenario().patched(set).and_then(|scenario| sandbox.set_scenario(scenario));
        if let Err(fault) = changed {
            return anyhow::anyhow!("events: {fault}");
        }
    }
    std::future::pending().await
}

/// What was seen on the way.
#[derive(Default)]
struct Watched {
    pushed: u64,
    left: u64,
    pushed_at_us: Vec<(String, u64)>,
    /// Each hold, and each with the time its release takes.
    holds_us: Vec<(u64, u64)>,
    delayed_us: Vec<(u64, u64)>,
}

/// Pushes as the launch says until the bulk is through, then waits for the rest.
async fn watch(
    launch: &Launch,
    store: &RedisStore,
    at: &Classes,
    api: Api,
    urgent: Urgent,
    quiet: bool,
) -> anyhow::Result<Watched> {
    let (mut seen, began) = (Watched::default(), Instant::now());
    let bars = Bars::new(launch, quiet);
    let patience = Duration::from_secs_f64(launch.physical_s() * 4.0 + 120.0);
    let mut every = tokio::time::interval(WATCH);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut bulk = 0;
    loop {
        every.tick().await;
        let at_s = began.elapsed().as_secs_f64();
        let due = launch.bulk_by(at_s).min(bulk + 500);
        if due > bulk {
            let jobs: Vec<Value> = (bulk..due).map(|index| job("bulk", &format!("bulk:{index}"))).collect();
            api.post("/v1/jobs", &Value::Array(jobs)).await?;
            bulk = due;
            if bulk < launch.bulk_by(at_s) {
                every.reset_immediately();
            }
        }
        let (depths, others) = (store.depths(&at.bulk).await?, store.depths(&at.transactional).await?);
        note_hold(&mut seen, &depths, &others, store, at).await?;
        bars.tell(&depths, &others);
        seen.left = open(&depths) + open(&others);
        if bulk == launch.bulk && open(&depths) == 0 {
            urgent.stop.cancel();
        }
        if urgent.pushing.is_finished() && seen.left == 0 || began.elapsed() > patience {
            bars.clear();
            urgent.stop.cancel();
            seen.pushed_at_us = urgent.pushing.await??;
            seen.pushed = bulk + seen.pushed_at_us.len() as u64;
            return Ok(seen);
        }
    }
}

/// A hold of the budget, and how long its paced release delays what had gathered by its end.
async fn note_hold(
    seen: &mut Watched,
    depths: &Depths,
    urgent: &Depths,
    store: &RedisStore,
    at: &Classes,
) -> anyhow::Result<()> {
    let Some(until_ms) = depths.holds.get(1).and_then(Option::as_ref).and_then(|hold| hold.until_ms) else {
        return Ok(());
    };
    let pace = store.pace(&at.bulk, &at.bulk.budgets[0]).await?.pace_per_s;
    let release_us = (urgent.waiting() as f64 / pace * 1e6) as u64 + 200_000;
    let (now_us, until_us) = (depths.now_ms * 1_000, until_ms * 1_000);
    match seen.holds_us.last_mut().filter(|(_, to)| *to + 20_000 >= now_us) {
        Some(last) => last.1 = until_us.max(last.1),
        None => {
            seen.holds_us.push((now_us, until_us));
            seen.delayed_us.push((now_us - 100_000, until_us));
        }
    }
    if let Some(last) = seen.delayed_us.last_mut() {
        last.1 = last.1.max(until_us + release_us);
    }
    Ok(())
}

fn open(depths: &Depths) -> u64 {
    use paceline_core::State;
    depths.waiting() + depths.of(State::InFlight)
}

/// The keys of what was filed as failed or dead.
async fn filed(store: &RedisStore, at: &Classes) -> anyhow::Result<Vec<String>> {
    use paceline_core::State;
    let mut keys = Vec::new();
    for class in [&at.bulk, &at.transactional] {
        for state in [State::Failed, State::Deferred, State::Unconfirmed] {
            let mut after = Cursor::default();
            loop {
                let page = store.list(class, state, &after, 200).await?;
                let Some(last) = page.last() else { break };
                after = Cursor { score_ms: last.score_ms, key: last.key.clone() };
                keys.extend(page.into_iter().map(|listed| listed.key));
            }
        }
    }
    Ok(keys)
}

/// Pushes the transactional jobs, each at its moment, whatever else is pushed meanwhile.
struct Urgent {
    stop: CancellationToken,
    pushing: JoinHandle<anyhow::Result<Vec<(String, u64)>>>,
}

impl Urgent {
    fn start(launch: &Launch, api: Api) -> Self {
        let (stop, rate) = (CancellationToken::new(), launch.transactional_rate);
        let stopped = stop.clone();
        let pushing = tokio::spawn(async move {
            let (began, began_us, mut pushed) = (Instant::now(), now_us(), Vec::new());
            if rate <= 0.0 {
                return Ok(pushed);
            }
            loop {
                let due = Duration::from_secs_f64((pushed.len() + 1) as f64 / rate);
                tokio::select! {
                    () = stopped.cancelled() => return Ok(pushed),
                    () = tokio::time::sleep_until(began + due) => {}
                }
                // From when it was due, so that a push that is late counts as waiting.
                let key = format!("transactional:{}", pushed.len());
                pushed.push((key.clone(), began_us + due.as_micros() as u64));
                api.post("/v1/jobs", &job("transactional", &key)).await?;
            }
        });
        Self { stop, pushing }
    }
}

fn job(class: &str, key: &str) -> Value {
    json!({ "class": class, "key": key, "payload": { "key": key, "to": "ada@example.org", "template": "welcome" } })
}

pub(super) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// How far the bulk is.
struct Bars(ProgressBar);

impl Bars {
    fn new(launch: &Launch, quiet: bool) -> Self {
        let style = ProgressStyle::with_template("{bar:40} {pos:>6}/{len:<6} {msg}")
            .expect("a constant template is valid");
        let bar = ProgressBar::new(launch.bulk).with_style(style);
        bar.set_draw_target(if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() });
        Self(bar)
    }

    fn tell(&self, bulk: &Depths, urgent: &Depths) {
        use paceline_core::State;
        let held = bulk
            .holds
            .iter()
            .flatten()
            .next()
            .map_or(String::new(), |hold| format!(", held: {}", hold.cause));
        self.0.set_position(bulk.of(State::Submitted));
        self.0.set_message(format!("{} transactional{held}", urgent.of(State::Submitted)));
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}
