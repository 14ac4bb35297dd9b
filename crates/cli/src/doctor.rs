//! `paceline doctor`, and what every start looks at first: each finding with what to do about it. What would lose data
//! refuses to start.

use crate::args::ServeOptions;
use crate::{print, settings};
use anyhow::{Context, bail};
use paceline_core::config::{Config, Durability};
use paceline_store::{ClassRef, RedisStore, ServerFacts, Store, Stranded};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Clocks that differ by more than this make times in logs and pages misleading.
const SKEW_MS: u64 = 1_000;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Weight {
    /// As it should be.
    Fine,
    /// It works, and something may surprise.
    Warns,
    /// It would lose data: no start.
    Refuses,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    weight: Weight,
    what: String,
    advice: String,
}

impl Finding {
    fn new(weight: Weight, what: impl Into<String>, advice: &str) -> Self {
        Self { weight, what: what.into(), advice: advice.into() }
    }

    fn fine(what: impl Into<String>) -> Self {
        Self::new(Weight::Fine, what, "")
    }
}

pub(crate) async fn run(path: Option<&Path>, options: &ServeOptions, json: bool) -> anyhow::Result<ExitCode> {
    let mut config = settings::load(path)?;
    if let Some(url) = &options.redis {
        config.redis.url.clone_from(url);
    }
    if config.redis.url.is_empty() {
        bail!(
            "redis.url is not set, so `serve` starts a private Redis with the right settings; name one to look at it"
        );
    }
    let timeout = Duration::from_millis(config.redis.response_timeout_ms);
    let store = RedisStore::open(&config.redis.url, config.namespace.clone(), timeout)?;
    let findings = look(&store, &config).await.context("Redis cannot be looked at")?;
    if json {
        print::json(&findings)?;
    } else {
        let mark = |weight| match weight {
            Weight::Fine => "ok",
            Weight::Warns => "warns",
            Weight::Refuses => "refuses",
        };
        let row =
            |found: &Finding| vec![mark(found.weight).to_owned(), found.what.clone(), found.advice.clone()];
        print::table(&["", "found", "what to do"], findings.iter().map(row).collect());
    }
    let refused = findings.iter().any(|found| found.weight == Weight::Refuses);
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Before anything is claimed or accepted: what would lose data is an error, the rest is told.
pub(crate) async fn before_start(store: &RedisStore, config: &Config) -> anyhow::Result<()> {
    for found in look(store, config).await? {
        match found.weight {
            Weight::Refuses => {
                bail!("{}: {} (`paceline doctor` looks at everything)", found.what, found.advice)
            }
            Weight::Warns => tracing::warn!(advice = found.advice, "{}", found.what),
            Weight::Fine => {}
        }
    }
    Ok(())
}

async fn look(store: &RedisStore, config: &Config) -> anyhow::Result<Vec<Finding>> {
    let classes: Vec<ClassRef> = config.classes.values().map(|class| ClassRef::of(config, class)).collect();
    let mut findings = of_server(&store.server_facts().await?, config.redis.durability);
    findings.extend(of_groups(&store.claim_groups(&classes).await?));
    for class in &classes {
        let slots = config.classes[&class.class].concurrency as f64;
        for at in &class.budgets {
            // A budget that was never declared has not been used either.
            let Ok(budget) = store.pace(class, at).await else { continue };
            findings.extend(of_slots(
                class.class.as_str(),
                slots,
                budget.ceiling_per_s,
                budget.heard.answer_ms,
            ));
        }
    }
    Ok(findings)
}

fn of_server(facts: &ServerFacts, durability: Durability) -> Vec<Finding> {
    let mut findings =
        vec![of_version(facts), of_eviction(facts), of_persistence(facts), of_durability(facts, durability)];
    if facts.is_replica {
        let advice = "point redis.url at the master; a replica takes no writes";
        findings.push(Finding::new(Weight::Refuses, "this Redis is a replica", advice));
    }
    let ahead_ms = facts.clock_ahead_ms;
    findings.push(if ahead_ms.unsigned_abs() > SKEW_MS {
        let what = format!("Redis's clock is {ahead_ms} ms ahead of this machine's");
        Finding::new(
            Weight::Warns,
            what,
            "synchronise both; leases and delays go by Redis's, logs by this one",
        )
    } else {
        Finding::fine(format!("Redis's clock is within {SKEW_MS} ms of this machine's"))
    });
    findings
}

fn of_version(facts: &ServerFacts) -> Finding {
    let what = format!("{} {}", facts.product, facts.version);
    let major: Option<u32> = facts.version.split('.').next().and_then(|major| major.parse().ok());
    match major {
        Some(7..) => Finding::fine(what),
        Some(_) => {
            Finding::new(Weight::Refuses, what, "Paceline's scripts need Redis 7.0 or later, or Valkey")
        }
        None => Finding::new(Weight::Warns, what, "its version cannot be told; Redis 7.0 or later is needed"),
    }
}

fn of_eviction(facts: &ServerFacts) -> Finding {
    let what = format!("maxmemory-policy is {}", facts.eviction);
    match (facts.eviction.as_str(), facts.max_memory_bytes) {
        ("noeviction", 0) => {
            let advice =
                "set maxmemory to at most 60 % of the memory, so that a full Redis refuses instead of dying";
            Finding::new(Weight::Fine, format!("{what}, and maxmemory is not set"), advice)
        }
        ("noeviction", _) => Finding::fine(what),
        (_, 0) => {
            let advice = "set it to noeviction: with a maxmemory this one would throw jobs away";
            Finding::new(Weight::Warns, what, advice)
        }
        _ => Finding::new(Weight::Refuses, what, "a full Redis would throw jobs away: set it to noeviction"),
    }
}

fn of_persistence(facts: &ServerFacts) -> Finding {
    if facts.has_aof {
        return Finding::fine("every write is appended to a file (AOF)");
    }
    let advice = "set appendonly yes; without it a restart forgets everything since the last snapshot";
    Finding::new(Weight::Warns, "AOF is off", advice)
}

/// What redis.durability promises has to be what this Redis does.
fn of_durability(facts: &ServerFacts, durability: Durability) -> Finding {
    let advice = "set it in Redis, or redis.durability to what it does";
    match (durability, facts.fsync.as_str()) {
        (Durability::Always, "") => {
            Finding::new(Weight::Warns, "redis.durability is always, and CONFIG GET is not allowed", advice)
        }
        (Durability::Always, fsync) if fsync != "always" || !facts.has_aof => Finding::new(
            Weight::Refuses,
            format!("redis.durability is always, and appendfsync is {fsync}, appendonly {}", facts.has_aof),
            advice,
        ),
        (Durability::Replica, _) if facts.replicas == 0 => {
            Finding::new(Weight::Warns, "redis.durability is replica, and no replica follows", advice)
        }
        _ => Finding::fine(format!("redis.durability is kept ({durability:?})").to_lowercase()),
    }
}

fn of_groups(stranded: &[Stranded]) -> Vec<Finding> {
    if stranded.is_empty() {
        return vec![Finding::fine("every class is in the group its jobs are in")];
    }
    let found = |one: &Stranded| {
        let what = format!("{} jobs of class {} are under the group {}", one.jobs, one.class, one.group);
        let advice = "set its group back and let them drain, or replay or erase them first: under another nobody finds them";
        Finding::new(Weight::Refuses, what, advice)
    };
    stranded.iter().map(found).collect()
}

/// A pace that needs more requests at once than a process has slots is never reached by one process.
fn of_slots(class: &str, slots: f64, ceiling_per_s: f64, answer_ms: u64) -> Option<Finding> {
    let needed = ceiling_per_s * answer_ms as f64 / 1_000.0;
    (needed > slots).then(|| {
        let what = format!(
            "class {class}: {ceiling_per_s:.0}/s with answers after {answer_ms} ms need {needed:.0} requests at once, and a process has {slots:.0}"
        );
        Finding::new(Weight::Warns, what, "raise concurrency, or run more workers")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> ServerFacts {
        ServerFacts {
            product: "redis".into(),
            version: "7.0.15".into(),
            eviction: "noeviction".into(),
            max_memory_bytes: 1 << 30,
            has_aof: true,
            fsync: "everysec".into(),
            replicas: 0,
            is_replica: false,
            clock_ahead_ms: 3,
        }
    }

    fn worst(facts: ServerFacts) -> Weight {
        worst_with(facts, Durability::Everysec)
    }

    fn worst_with(facts: ServerFacts, durability: Durability) -> Weight {
        let weight = |found: &Finding| found.weight;
        let findings = of_server(&facts, durability);
        assert!(findings.iter().all(|found| found.weight == Weight::Fine || !found.advice.is_empty()));
        if findings.iter().map(weight).any(|weight| weight == Weight::Refuses) {
            Weight::Refuses
        } else if findings.iter().map(weight).any(|weight| weight == Weight::Warns) {
            Weight::Warns
        } else {
            Weight::Fine
        }
    }

    #[test]
    fn what_would_lose_data_refuses_and_what_may_surprise_warns() {
        assert_eq!(worst(good()), Weight::Fine);
        assert_eq!(worst(ServerFacts { version: "6.2.7".into(), ..good() }), Weight::Refuses);
        assert_eq!(worst(ServerFacts { eviction: "allkeys-lru".into(), ..good() }), Weight::Refuses);
        assert_eq!(worst(ServerFacts { is_replica: true, ..good() }), Weight::Refuses);
        assert_eq!(worst(ServerFacts { has_aof: false, ..good() }), Weight::Warns);
        assert_eq!(worst_with(good(), Durability::Always), Weight::Refuses);
        assert_eq!(worst_with(good(), Durability::Replica), Weight::Warns);
        let kept = ServerFacts { fsync: "always".into(), replicas: 1, ..good() };
        assert_eq!(worst_with(kept.clone(), Durability::Always), Weight::Fine);
        assert_eq!(worst_with(kept, Durability::Replica), Weight::Fine);
        assert_eq!(worst(ServerFacts { max_memory_bytes: 0, ..good() }), Weight::Fine);
        assert_eq!(worst(ServerFacts { clock_ahead_ms: -2_500, ..good() }), Weight::Warns);
        assert!(
            of_slots("bulk", 128.0, 100.0, 1_000).is_none()
                && of_slots("bulk", 128.0, 100.0, 2_000).is_some()
        );
    }
}
