//! A master that dies under load, and Sentinels that name another.

use crate::support::{BULK, open_door, slow, with_class};
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_store::RedisStore;
use paceline_tests::redis_server::RedisServer;
use paceline_tests::sentinel::Sentinels;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::time::{Duration, Instant};

async fn watched(scenario: Scenario, settings: &str) -> (Stage, Sentinels) {
    let master = RedisServer::with(&["--appendonly", "no", "--repl-diskless-sync-delay", "0"]);
    let sentinels = Sentinels::around(&master);
    let mut stage = Stage::through(master, &sentinels.url(), scenario, settings).await;
    let name = stage.config.namespace.clone();
    stage.store = RedisStore::open(&sentinels.url(), name, Duration::from_secs(2)).expect("a good URL");
    (stage, sentinels)
}

/// Everything that was acknowledged is on a replica.
fn await_replicas(stage: &Stage) {
    let copies: u64 =
        redis::cmd("WAIT").arg(2).arg(5_000).query(&mut stage.redis.connection()).expect("redis runs");
    assert_eq!(copies, 2);
}

#[tokio::test]
async fn a_failover_by_sentinels_is_followed_and_doubles_nothing_where_the_provider_deduplicates() {
    let (mut stage, sentinels) = watched(slow(20), &with_class("concurrency = 8")).await;
    stage.push(BULK, 600).await;
    await_replicas(&stage);
    let workers = [stage.process(), stage.process()];
    stage.await_count(BULK, State::Submitted, 100).await;
    stage.redis.kill();
    sentinels.await_failover();
    let named = Instant::now();
    let before = stage.ledger().summary.delivered;
    while stage.ledger().summary.delivered == before {
        assert!(named.elapsed() < Duration::from_secs(20), "sending never went on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 600, "{depths:?}");
    let summary = stage.ledger().summary;
    assert_eq!((summary.delivered, summary.duplicates), (600, 0), "{summary:?}");
    drop(workers);
}

/// Pushes that waited for a replica survive the master that took them, though nobody gave the others time to follow.
#[tokio::test]
async fn what_waited_for_a_replica_survives_its_master() {
    let (mut stage, sentinels) = watched(open_door(), ONE_CLASS).await;
    stage.store = stage.store.clone().waiting_for_replica();
    stage.push(BULK, 400).await;
    stage.redis.kill();
    sentinels.await_failover();
    let worker = stage.worker();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 400, "{depths:?}");
    assert_eq!(stage.ledger().summary.duplicates, 0);
    worker.stopped().await;
}

/// A worker and a producer that start while the master is gone wait for the next one.
#[tokio::test]
async fn who_starts_between_two_masters_waits_for_the_next() {
    let (mut stage, sentinels) = watched(open_door(), ONE_CLASS).await;
    stage.push(BULK, 20).await;
    await_replicas(&stage);
    stage.redis.kill();
    let worker = stage.process();
    sentinels.await_failover();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    drop(worker);
}
