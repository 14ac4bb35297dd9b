//! Redis is gone: failures 55. Every loop survives it, nothing is counted against a job, readiness tells.

use crate::killed::ended;
use crate::support::*;
use nix::sys::signal::Signal;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_store::{RedisStore, Store, StoreError};
use paceline_tests::proxy::Proxy;
use paceline_tests::redis_server::RedisServer;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::time::Duration;

/// Off and on again, in order, with three seconds between.
async fn away_for_three_seconds(stage: &mut Stage) {
    stage.redis.stop();
    tokio::time::sleep(Duration::from_secs(3)).await;
    stage.redis.run();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_away_during_a_blocking_wait_costs_nothing() {
    let mut stage = Stage::over(durable_redis(), open_door(), ONE_CLASS).await;
    let worker = stage.worker();
    until("it has claimed", async || worker.health.problem().is_none()).await;
    away_for_three_seconds(&mut stage).await;
    push_until_taken(&stage, &stage.store, 0..20).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    assert_none_spent(&stage, State::Submitted).await;
    assert_delivered_once(&stage, 20);
    worker.stopped().await;
}

/// A paced class claims all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_away_during_claims_costs_nothing() {
    let settings = ONE_CLASS.replace("rate = \"10000/s\"\nburst = 1000", "rate = \"200/s\"\nburst = 10");
    let mut stage = Stage::over(durable_redis(), open_door(), &settings).await;
    stage.push(BULK, 300).await;
    let tally = Tally::of(&stage, 300);
    let worker = stage.worker();
    await_requests(&stage, 50).await;
    away_for_three_seconds(&mut stage).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 300, "{depths:?}");
    // A claim whose reply was lost with Redis may have lapsed by the time it is repeated; nothing of it was sent.
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.counters.spent == 0));
    assert_delivered_once(&stage, 300);
    assert_eq!(stage.ledger().summary.requests, 300, "nothing was sent twice");
    tally.was_right().await;
    worker.stopped().await;
}

/// The answers come while Redis is away, and leases lapse meanwhile: what was accepted is written later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_that_cannot_be_written_are_kept_and_written_later() {
    let mut stage = Stage::over(durable_redis(), slow(500), ONE_CLASS).await;
    stage.push(BULK, 20).await;
    let worker = stage.worker();
    await_requests(&stage, 20).await;
    stage.redis.stop();
    until("readiness is red", async || worker.health.problem().is_some()).await;
    assert!(worker.health.oldest_unwritten().is_some(), "it says what waits");
    stage.redis.run();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    until("readiness is green", async || worker.health.problem().is_none()).await;
    assert_eq!(worker.health.oldest_unwritten(), None);
    assert_none_spent(&stage, State::Submitted).await;
    assert_delivered_once(&stage, 20);
    assert_eq!(stage.ledger().summary.requests, 20, "nothing was sent twice");
    worker.stopped().await;
}

/// It hangs instead of hanging up: calls that were given up are carried out later, beside their repeats.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_hangs_for_three_seconds_loses_and_doubles_nothing() {
    let settings = ONE_CLASS.replace("rate = \"10000/s\"\nburst = 1000", "rate = \"200/s\"\nburst = 10");
    let stage = Stage::over(durable_redis(), slow(30), &settings).await;
    stage.push(BULK, 200).await;
    let worker = stage.worker();
    await_requests(&stage, 50).await;
    stage.redis.signal(Signal::SIGSTOP);
    tokio::time::sleep(Duration::from_secs(3)).await;
    stage.redis.signal(Signal::SIGCONT);
    let depths = stage.await_drained(BULK).await;
    assert_eq!((depths.of(State::Submitted), total(&depths)), (200, 200), "{depths:?}");
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.counters.spent == 0));
    assert_delivered_once(&stage, 200);
    let counts = counts(&stage).await;
    assert_eq!(counts["202|accepted|submitted"], 200, "{counts:?}");
    worker.stopped().await;
}

/// Its outcomes cannot be written: it says so, ends, and their leases lapse.
#[tokio::test]
async fn a_worker_told_to_stop_while_redis_is_away_ends_all_the_same() {
    let mut stage = Stage::over(durable_redis(), slow(300), ONE_CLASS).await;
    stage.push(BULK, 5).await;
    let worker = stage.process();
    await_requests(&stage, 5).await;
    stage.redis.stop();
    worker.signal(Signal::SIGTERM);
    assert!(ended(worker).await, "it ended in order");
    stage.redis.run();
    let other = stage.worker();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 5, "{depths:?}");
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.counters.spent == 0));
    assert_delivered_once(&stage, 5);
    other.stopped().await;
}

/// Two workers and a producer that repeats; Redis is killed twice under them.
async fn killed_twice_under_load(scenario: Scenario, settings: &str) -> Stage {
    let mut stage = Stage::over(durable_redis(), scenario, settings).await;
    let workers = [stage.worker(), stage.worker()];
    let (store, class) = (stage.store.clone(), stage.class(BULK));
    let producer = tokio::spawn(async move {
        for chunk in 0..40 {
            while store.push(&class, &jobs(chunk * 10..(chunk + 1) * 10)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    });
    for requests in [60, 200] {
        await_requests(&stage, requests).await;
        stage.redis.kill();
        tokio::time::sleep(Duration::from_millis(400)).await;
        stage.redis.run();
    }
    producer.await.expect("it never gives up");
    stage.await_drained(BULK).await;
    for worker in workers {
        worker.stopped().await;
    }
    stage
}

/// AOF always: what was acknowledged is there, whatever became of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_killed_under_load_loses_nothing_it_acknowledged() {
    let stage = killed_twice_under_load(slow(30), ONE_CLASS).await;
    let depths = stage.depths(BULK).await;
    assert_eq!((depths.of(State::Submitted), total(&depths)), (400, 400), "{depths:?}");
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.counters.spent == 0));
    assert_delivered_once(&stage, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_killed_under_load_doubles_nothing_where_a_person_is_asked() {
    let scenario = Scenario { deduplicates: false, ..slow(30) };
    let stage = killed_twice_under_load(scenario, &forgetful(ONE_CLASS)).await;
    let depths = stage.depths(BULK).await;
    let (submitted, unconfirmed) = (depths.of(State::Submitted), depths.of(State::Unconfirmed));
    assert_eq!((submitted + unconfirmed, total(&depths)), (400, 400), "{depths:?}");
    let summary = stage.ledger().summary;
    assert_eq!((summary.requests, summary.duplicates), (summary.accepted, 0), "{summary:?}");
    assert!(summary.accepted >= submitted, "{summary:?}");
}

/// Back to the snapshot: whatever was sent since is sent again, and the provider knows its send ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_snapshot_doubles_nothing_where_the_provider_deduplicates() {
    let mut stage = Stage::over(RedisServer::without_aof(), open_door(), ONE_CLASS).await;
    stage.push(BULK, 20).await;
    redis::cmd("SAVE").exec(&mut stage.redis.connection()).expect("it runs");
    let worker = stage.worker();
    stage.await_count(BULK, State::Submitted, 20).await;
    stage.redis.kill();
    stage.redis.run();
    until("it is sent again", async || stage.sandbox.summary().requests == 40).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    assert_delivered_once(&stage, 20);
    worker.stopped().await;
}

/// Redis forgets twenty claims while their requests are on the wire. The worker that holds them says so before anybody
/// claims them again, and takes their acceptances as they come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_that_redis_forgot_double_nothing_where_a_person_is_asked() {
    let scenario = Scenario { deduplicates: false, ..slow(1_300) };
    let mut stage = Stage::over(RedisServer::without_aof(), scenario, &forgetful(ONE_CLASS)).await;
    stage.push(BULK, 20).await;
    redis::cmd("SAVE").exec(&mut stage.redis.connection()).expect("it runs");
    let worker = stage.worker();
    await_requests(&stage, 20).await;
    stage.redis.kill();
    stage.redis.run();
    let depths = stage.await_drained(BULK).await;
    until("their acceptances are told", async || stage.depths(BULK).await.of(State::Submitted) == 20).await;
    assert_eq!(count(&stage, "|doubted|unconfirmed").await, 20, "{depths:?}");
    assert_delivered_once(&stage, 20);
    worker.stopped().await;
}

/// The master dies under load; its replica has whatever was replicated, and the name leads to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_doubles_nothing_where_the_provider_deduplicates() {
    let (master, mut replica) = (durable_redis(), durable_redis());
    let proxy = Proxy::to(master.port()).await;
    let settings = ONE_CLASS.replace("rate = \"10000/s\"\nburst = 1000", "rate = \"300/s\"\nburst = 10");
    let mut stage = Stage::through(master, &proxy.url(), slow(30), &settings).await;
    let port = stage.redis.port().to_string();
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).exec(&mut replica.connection()).expect("it runs");
    stage.push(BULK, 300).await;
    let in_sync = redis::cmd("WAIT").arg(1).arg(20_000).query::<u64>(&mut stage.redis.connection());
    assert_eq!(in_sync.expect("it runs"), 1, "the replica has every push");
    let worker = stage.worker();
    await_requests(&stage, 100).await;
    stage.redis.kill();
    redis::cmd("REPLICAOF").arg("NO").arg("ONE").exec(&mut replica.connection()).expect("it runs");
    proxy.redirect(replica.port());
    std::mem::swap(&mut stage.redis, &mut replica);
    stage.store =
        RedisStore::open(&stage.redis.url(), stage.config.namespace.clone(), Duration::from_secs(2))
            .expect("a good URL");
    let depths = stage.await_drained(BULK).await;
    assert_eq!((depths.of(State::Submitted), total(&depths)), (300, 300), "{depths:?}");
    assert_delivered_once(&stage, 300);
    worker.stopped().await;
}

#[tokio::test]
async fn a_worker_that_is_there_before_its_redis_waits_and_then_works() {
    let mut stage = Stage::over(durable_redis(), open_door(), ONE_CLASS).await;
    stage.push(BULK, 20).await;
    stage.redis.stop();
    let (embedded, process) = (stage.worker(), stage.process());
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(embedded.health.problem().is_some(), "it is not ready before its first claim");
    stage.redis.run();
    stage.await_count(BULK, State::Submitted, 20).await;
    until("it is ready", async || embedded.health.problem().is_none()).await;
    embedded.stopped().await;
    // The process alone does the rest.
    push_until_taken(&stage, &stage.store, 20..40).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 40, "{depths:?}");
    assert_delivered_once(&stage, 40);
    drop(process);
}

#[tokio::test]
async fn a_redis_that_was_emptied_under_its_worker_is_used_again() {
    let stage = Stage::new(slow(300), ONE_CLASS).await;
    let worker = stage.worker();
    stage.push(BULK, 10).await;
    await_requests(&stage, 10).await;
    redis::cmd("FLUSHALL").exec(&mut stage.redis.connection()).expect("it runs");
    assert_eq!(stage.store.push(&stage.class(BULK), &jobs(10..11)).await, Err(StoreError::UnknownClass));
    // The worker declares its limits again; nobody else does.
    push_until_taken(&stage, &stage.store, 10..20).await;
    stage.await_count(BULK, State::Submitted, 10).await;
    until("the lost ones are counted", async || count(&stage, "|gone|").await == 10).await;
    assert_delivered_once(&stage, 20);
    worker.stopped().await;
}
