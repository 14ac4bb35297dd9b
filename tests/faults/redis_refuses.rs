//! Redis is there and says no: LOADING, READONLY, out of memory, disk trouble, or it hangs up all the time.

use crate::support::*;
use paceline_core::State;
use paceline_store::{ClaimAsk, Store, StoreError};
use paceline_tests::redis_server::RedisServer;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::path::Path;
use std::time::Duration;

fn say(redis: &RedisServer, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.exec(&mut redis.connection()).expect("the server obeys its test");
}

fn ask() -> ClaimAsk {
    ClaimAsk {
        worker: "test".into(),
        nonce: "1".into(),
        max_jobs: 1,
        lease_ms: 10_000,
        lookahead_ms: 0,
        solo_lapses: 2,
    }
}

/// Paced so that it takes a while.
fn paced(rate: u32) -> String {
    ONE_CLASS.replace("rate = \"10000/s\"\nburst = 1000", &format!("rate = \"{rate}/s\"\nburst = 10"))
}

async fn assert_all_sent_once(stage: &Stage, n: u64) {
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), n, "{depths:?}");
    assert_none_spent(stage, State::Submitted).await;
    assert_delivered_once(stage, n);
    assert_eq!(stage.ledger().summary.requests, n, "nothing was sent twice");
}

/// failures 58, ten times as often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_killed_all_the_time_lose_and_double_nothing() {
    let stage = Stage::new(slow(20), &paced(100)).await;
    stage.push(BULK, 300).await;
    let worker = stage.worker();
    let mut connection = stage.redis.connection();
    let mut killed = 0;
    while stage.sandbox.summary().requests < 250 {
        killed += redis::cmd("CLIENT")
            .arg("KILL")
            .arg("TYPE")
            .arg("normal")
            .query::<u64>(&mut connection)
            .expect("it runs");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(killed >= 10, "{killed}");
    assert_all_sent_once(&stage, 300).await;
    worker.stopped().await;
}

/// failures 59: a node that was demoted refuses every write, until it is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_read_only_for_a_while_is_waited_for() {
    let stage = Stage::new(slow(20), &paced(200)).await;
    stage.push(BULK, 200).await;
    let worker = stage.worker();
    await_requests(&stage, 50).await;
    // A master that nobody can reach: it keeps its data and becomes read-only.
    say(&stage.redis, &["REPLICAOF", "127.0.0.1", "1"]);
    let refused = stage.store.push(&stage.class(BULK), &jobs(200..201)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(stage.depths(BULK).await.waiting() > 0, "nothing was claimed meanwhile");
    say(&stage.redis, &["REPLICAOF", "NO", "ONE"]);
    assert_all_sent_once(&stage, 200).await;
    worker.stopped().await;
}

/// failures 59: a data set that takes its time to load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_loading_is_waited_for() {
    let slow_to_load = ["--appendonly", "no", "--enable-debug-command", "yes", "--key-load-delay", "600"];
    let often = ["--loading-process-events-interval-bytes", "1024"];
    let redis = RedisServer::with(&[&slow_to_load[..], &often].concat());
    let mut stage = Stage::over(redis, open_door(), ONE_CLASS).await;
    stage.push(BULK, 50).await;
    say(&stage.redis, &["DEBUG", "POPULATE", "2500", "ballast", "100"]);
    say(&stage.redis, &["SAVE"]);
    stage.redis.kill();
    let worker = stage.worker();
    stage.redis.run();
    let loading = stage.store.depths(&stage.class(BULK)).await;
    assert!(
        matches!(&loading, Err(StoreError::Unavailable(text)) if text.contains("loading")),
        "{loading:?}"
    );
    assert_all_sent_once(&stage, 50).await;
    worker.stopped().await;
}

/// What adds is refused, what frees still runs: the jobs on the wire are settled.
#[tokio::test]
async fn at_the_memory_limit_what_is_on_the_wire_is_settled_and_nothing_new_begins() {
    let stage = Stage::new(slow(500), &with_class("concurrency = 10")).await;
    stage.push(BULK, 30).await;
    let worker = stage.worker();
    await_requests(&stage, 10).await;
    say(&stage.redis, &["CONFIG", "SET", "maxmemory", "1"]);
    stage.await_count(BULK, State::Submitted, 10).await;
    let class = stage.class(BULK);
    assert_eq!(stage.store.push(&class, &jobs(30..31)).await, Err(StoreError::OutOfMemory));
    assert_eq!(stage.store.claim(&class, &ask()).await, Err(StoreError::OutOfMemory));
    assert_eq!(stage.depths(BULK).await.waiting(), 20);
    assert_eq!(stage.ledger().summary.requests, 10);
    say(&stage.redis, &["CONFIG", "SET", "maxmemory", "0"]);
    assert_all_sent_once(&stage, 30).await;
    worker.stopped().await;
}

/// The last save failed, and Redis refuses every write until one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_cannot_save_is_waited_for() {
    let stage = Stage::over(RedisServer::without_aof(), slow(20), &paced(200)).await;
    stage.push(BULK, 200).await;
    let worker = stage.worker();
    await_requests(&stage, 50).await;
    let mut connection = stage.redis.connection();
    let dir: (String, String) =
        redis::cmd("CONFIG").arg("GET").arg("dir").query(&mut connection).expect("it runs");
    // A folder that is not empty cannot be replaced by a file.
    let in_the_way = Path::new(&dir.1).join("dump.rdb");
    std::fs::create_dir_all(in_the_way.join("x")).expect("the folder is ours");
    say(&stage.redis, &["CONFIG", "SET", "save", "3600 1000000"]);
    say(&stage.redis, &["BGSAVE"]);
    let class = stage.class(BULK);
    until("writes are refused", async || match stage.store.push(&class, &jobs(0..1)).await {
        Err(StoreError::Unavailable(problem)) => problem.contains("MISCONF"),
        _ => false,
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(stage.depths(BULK).await.waiting() > 0, "nothing is claimed meanwhile");
    std::fs::remove_dir_all(&in_the_way).expect("the folder is ours");
    say(&stage.redis, &["BGSAVE"]);
    assert_all_sent_once(&stage, 200).await;
    worker.stopped().await;
}

/// Every reconnect is refused with a general error, which is neither a bug of ours nor a reason to drop outcomes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_takes_no_more_clients_is_waited_for() {
    let stage = Stage::new(slow(300), &with_class("concurrency = 10")).await;
    stage.push(BULK, 30).await;
    let worker = stage.worker();
    let mut connection = stage.redis.connection();
    await_requests(&stage, 10).await;
    let full = |max: u32| redis::cmd("CONFIG").arg("SET").arg("maxclients").arg(max).to_owned();
    full(1).exec(&mut connection).expect("it runs");
    redis::cmd("CLIENT")
        .arg("KILL")
        .arg("TYPE")
        .arg("normal")
        .query::<u64>(&mut connection)
        .expect("it runs");
    // The answers come, and cannot be written.
    let refused = stage.store.depths(&stage.class(BULK)).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.ledger().summary.requests, 10);
    full(1_000).exec(&mut connection).expect("it runs");
    assert_all_sent_once(&stage, 30).await;
    worker.stopped().await;
}

/// Somebody's script runs and runs; Redis answers BUSY until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_busy_with_somebodys_script_is_waited_for() {
    let stage = Stage::new(slow(20), &paced(200)).await;
    stage.push(BULK, 200).await;
    let worker = stage.worker();
    await_requests(&stage, 50).await;
    say(&stage.redis, &["CONFIG", "SET", "busy-reply-threshold", "100"]);
    let (mut theirs, mut ours) = (stage.redis.connection(), stage.redis.connection());
    let endless = tokio::task::spawn_blocking(move || {
        redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut theirs).expect_err("it is killed")
    });
    until("it is busy", async || redis::cmd("PING").exec(&mut ours).is_err()).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    redis::cmd("SCRIPT").arg("KILL").exec(&mut ours).expect("it can be killed");
    endless.await.expect("it ends");
    assert_all_sent_once(&stage, 200).await;
    worker.stopped().await;
}
