//! `paceline bench`: jobs per second through push → claim → settle, next to what this Redis does with a trivial
//! script in the same run. Ratios on one machine in one run; absolutes are the machine's mood.

use crate::args::BenchOptions;
use crate::print;
use crate::private_redis::{Durability, PrivateRedis};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use paceline_core::decide::{Draws, Seen};
use paceline_core::policy::{OnAmbiguous, Policy, Trips};
use paceline_core::{JobKey, Name, Outcome, backoff::Backoff, budget::Limits, decide};
use paceline_store::{
    BudgetRef, Claim, ClaimAsk, ClassRef, NewJob, Record, RedisStore, Settled, Settlement, Spender, Store,
};
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// One result; the best run of each kind.
#[derive(Debug, Serialize)]
struct Figures {
    jobs: usize,
    batch: usize,
    jobs_per_s: f64,
    evalsha_per_s: f64,
    /// must 0.55, good 0.80
    throughput_ratio: f64,
    redis_cpu_us_per_job: f64,
    redis_cpu_us_per_evalsha: f64,
    /// must 2.2, good 1.5
    cpu_ratio: f64,
    /// Beyond the payload; must 350, good 320
    bytes_per_waiting_job: f64,
    /// must 320, good 280
    bytes_per_receipt: f64,
    /// must 0.10, good 0.06
    calls_per_job: f64,
}

struct Run {
    seconds: f64,
    cpu_us: f64,
    bytes_waiting: f64,
    bytes_done: f64,
}

pub(crate) async fn run(options: &BenchOptions) -> anyhow::Result<ExitCode> {
    if options.batch == 0 || options.batch > 200 {
        bail!("--batch must be from 1 to 200");
    }
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}").expect("a constant template is valid");
    let bar = ProgressBar::new(options.runs as u64 * 2).with_style(style);
    let mut pipeline: Vec<Run> = Vec::new();
    let mut reference: Vec<(f64, f64)> = Vec::new();
    for _ in 0..options.runs.max(1) {
        let folder = tempfile::tempdir()?;
        let redis = PrivateRedis::start(folder.path(), Durability::None).await?;
        bar.set_message("redis-benchmark EVALSHA");
        reference.push(evalsha(&redis).await?);
        bar.inc(1);
        bar.set_message("push → claim → settle");
        pipeline.push(push_claim_settle(&redis, options).await?);
        bar.inc(1);
        redis.stop().await;
    }
    bar.finish_and_clear();
    let figures = figures(options, &pipeline, &reference);
    if options.json {
        print::json(&figures)?;
    } else {
        let value = serde_json::to_value(&figures)?;
        let rows = value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| vec![name.clone(), value.to_string()]);
        print::table(&["figure", "value"], rows.collect());
    }
    Ok(ExitCode::SUCCESS)
}

fn figures(options: &BenchOptions, pipeline: &[Run], reference: &[(f64, f64)]) -> Figures {
    let round = |value: f64| (value * 100.0).round() / 100.0;
    let best = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let jobs = options.jobs as f64;
    let jobs_per_s = jobs / best(&mut pipeline.iter().map(|run| run.seconds));
    let evalsha_per_s = reference.iter().map(|(per_s, _)| *per_s).fold(0.0, f64::max);
    let cpu_job = best(&mut pipeline.iter().map(|run| run.cpu_us)) / jobs;
    let cpu_evalsha = best(&mut reference.iter().map(|(_, cpu)| *cpu));
    Figures {
        jobs: options.jobs,
        batch: options.batch,
        jobs_per_s: jobs_per_s.round(),
        evalsha_per_s: evalsha_per_s.round(),
        throughput_ratio: round(jobs_per_s / evalsha_per_s),
        redis_cpu_us_per_job: round(cpu_job),
        redis_cpu_us_per_evalsha: round(cpu_evalsha),
        cpu_ratio: round(cpu_job / cpu_evalsha),
        bytes_per_waiting_job: best(&mut pipeline.iter().map(|run| run.bytes_waiting)).round(),
        bytes_per_receipt: best(&mut pipeline.iter().map(|run| run.bytes_done)).round(),
        calls_per_job: round(3.0 / options.batch as f64),
    }
}

/// `redis-benchmark -P 1` of a trivial script: operations and Redis CPU µs per operation.
async fn evalsha(redis: &PrivateRedis) -> anyhow::Result<(f64, f64)> {
    const OPERATIONS: usize = 100_000;
    let port = redis.port().to_string();
    let cli = |args: &[&str]| {
        let mut command = tokio::process::Command::new("redis-cli");
        command.args(["-p", &port]).args(args);
        command
    };
    let loaded = cli(&["SCRIPT", "LOAD", "return redis.call('SET', KEYS[1], ARGV[1])"]).output().await?;
    let sha = String::from_utf8(loaded.stdout)?.trim().to_owned();
    let before = cpu_us(redis)?;
    let output = tokio::process::Command::new("redis-benchmark")
        .args([
            "-p",
            &port,
            "-n",
            &OPERATIONS.to_string(),
            "-P",
            "1",
            "--csv",
            "EVALSHA",
            &sha,
            "1",
            "k",
            "v",
        ])
        .output()
        .await
        .context("redis-benchmark is not installed (it comes with redis-server or redis-tools)")?;
    let cpu_us = (cpu_us(redis)? - before) / OPERATIONS as f64;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().last().unwrap_or_default();
    let per_s = row.split("\",\"").nth(1).and_then(|field| field.trim_matches('"').parse::<f64>().ok());
    Ok((per_s.with_context(|| format!("redis-benchmark printed {text:?}"))?, cpu_us))
}

async fn push_claim_settle(redis: &PrivateRedis, options: &BenchOptions) -> anyhow::Result<Run> {
    let store = RedisStore::open(&redis.url(), Name::new("bench")?, Duration::from_secs(10))?;
    let class = class()?;
    store.declare(&class).await?;
    let payload = document(0).len() as f64;
    // One job through everything first, so that no script is compiled inside the measurement.
    round(&store, &class, &[new_job(usize::MAX)?], options.batch).await?;
    let empty = memory(redis).await?;
    let before = cpu_us(redis)?;
    let began = Instant::now();
    let jobs: Vec<NewJob> = (0..options.jobs).map(new_job).collect::<anyhow::Result<_>>()?;
    let made = began.elapsed();
    let mut pushed = 0;
    for chunk in jobs.chunks(options.batch) {
        pushed += store.push(&class, chunk).await?.len();
    }
    let pushed_in = began.elapsed();
    let waiting = memory(redis).await?;
    let drained_from = Instant::now();
    drain(&store, &class, pushed, options.batch).await?;
    let seconds = (pushed_in - made + drained_from.elapsed()).as_secs_f64();
    let done = memory(redis).await?;
    let jobs = options.jobs as f64;
    Ok(Run {
        seconds,
        cpu_us: cpu_us(redis)? - before,
        bytes_waiting: (waiting - empty) / jobs - payload,
        bytes_done: (done - empty) / jobs,
    })
}

async fn round(store: &RedisStore, class: &ClassRef, jobs: &[NewJob], batch: usize) -> anyhow::Result<()> {
    store.push(class, jobs).await?;
    drain(store, class, jobs.len(), batch).await
}

async fn drain(store: &RedisStore, class: &ClassRef, jobs: usize, batch: usize) -> anyhow::Result<()> {
    let policy = policy()?;
    let mut settled = 0;
    let mut claims = 0;
    while settled < jobs {
        claims += 1;
        let ask = ClaimAsk {
            worker: "bench".into(),
            nonce: format!("{}-{claims}-{jobs}", std::process::id()),
            max_jobs: batch,
            lease_ms: 20_000,
            lookahead_ms: 20,
            solo_lapses: 2,
        };
        let Claim::Jobs(claimed) = store.claim(class, &ask).await? else {
            bail!("nothing to claim at {settled}")
        };
        let accepted = Outcome::Accepted { message_id: Some("0123456789abcdef".into()) };
        let draws = Draws { spread: 0.0, jitter: 0.0 };
        let settlements: Vec<Settlement> = claimed
            .jobs
            .iter()
            .filter_map(|claimed_job| {
                let Record::Job(job) = &claimed_job.record else { return None };
                Some(Settlement {
                    key: claimed_job.key.clone(),
                    birth: job.birth,
                    deadline_ms: claimed.deadline_ms,
                    claimed_ms: claimed.now_ms,
                    probed: false,
                    decision: decide(job, &accepted, &policy, Seen::default(), claimed.now_ms, draws),
                    decided_again: false,
                    count: "202|accepted".into(),
                    history: b"{\"at_ms\":1796000000000,\"code\":\"202\",\"outcome\":\"accepted\",\"rule\":\"http:202\",\"latency_ms\":12,\"message_id\":\"0123456789abcdef\"}\n".to_vec(),
                })
            })
            .collect();
        let answers = store.settle(class, &Trips::default(), &settlements).await?;
        settled += answers.iter().filter(|answer| matches!(answer, Settled::Moved(_))).count();
    }
    Ok(())
}

fn class() -> anyhow::Result<ClassRef> {
    let name = Name::new("bench")?;
    let limits = Limits::fixed("100000/s".parse()?, 100_000, 0);
    let spender = Spender { class: name.clone(), share: 1.0, shed_order: 20 };
    let budget = BudgetRef { name: Name::new("bench-key")?, limits, spenders: vec![spender] };
    Ok(ClassRef { class: name.clone(), group: name, budgets: vec![budget], max_waiting: 0 })
}

fn policy() -> anyhow::Result<Policy> {
    Ok(Policy {
        max_spent: 10,
        max_unknown: 3,
        max_lapses: 3,
        solo_lapses: 2,
        throttle_horizon_ms: 86_400_000,
        tries_per_hour: 60,
        backoff: Backoff::new(1_000, 300_000)?,
        on_ambiguous: OnAmbiguous::Ask,
        dedup_window_ms: Some(86_400_000),
        trips: Trips::default(),
    })
}

/// About 300 bytes that differ from job to job, as those of real messages do: Lua 5.1 hashes a long string by a
/// few of its bytes, so that copies of one document would measure its worst case and nothing else.
fn document(index: usize) -> Vec<u8> {
    let word = |n: u64| (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(n as u32 * 7);
    let text: String = (0..17).map(|n| format!("{:016x} ", word(n))).collect();
    format!("{{\"payload\":\"{text}\"}}").into_bytes()
}

fn new_job(index: usize) -> anyhow::Result<NewJob> {
    let document = document(index);
    Ok(NewJob {
        key: JobKey::new(format!("job:{index:018}"))?,
        at_ms: 0,
        expires_at_ms: 0,
        cost: 1,
        campaign: String::new(),
        // As the HTTP door passes it: the SHA-1 of the canonical form.
        fingerprint: format!("{:040x}", index as u128 * 0x9E37_79B9),
        document,
    })
}

/// User and system time of the server so far, in µs.
fn cpu_us(redis: &PrivateRedis) -> anyhow::Result<f64> {
    let pid = redis.pid().context("redis-server has ended")?;
    let stat =
        std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the bench reads /proc (Linux)")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().filter_map(|&at| fields.get(at)?.parse::<f64>().ok()).sum();
    Ok(ticks * 10_000.0)
}

async fn memory(redis: &PrivateRedis) -> anyhow::Result<f64> {
    let port = redis.port().to_string();
    let output =
        tokio::process::Command::new("redis-cli").args(["-p", &port, "INFO", "memory"]).output().await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let used = text.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse::<f64>().ok());
    used.context("INFO memory has used_memory")
}
