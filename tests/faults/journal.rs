//! Redis goes away right after the provider has said yes, and the worker ends before Redis is back: what it knows must
//! not end with it.

use crate::killed::ended;
use crate::support::*;
use nix::sys::signal::Signal;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_tests::stage::{ONE_CLASS, Process, Stage};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Five jobs accepted at a provider that does not deduplicate, and nobody told Redis.
async fn accepted_and_untold() -> (Stage, Process) {
    let scenario = Scenario { deduplicates: false, ..slow(300) };
    let mut stage = Stage::over(durable_redis(), scenario, &forgetful(ONE_CLASS)).await;
    stage.push(BULK, 5).await;
    let worker = stage.process();
    await_requests(&stage, 5).await;
    stage.redis.stop();
    let folder = stage.settings_file().with_file_name(".paceline").join("journal");
    until("the outcomes are on the disk", async || {
        let lines =
            std::fs::read_dir(&folder).into_iter().flatten().flatten().filter_map(|entry| {
                std::fs::read_to_string(entry.path()).ok().map(|text| text.lines().count())
            });
        lines.sum::<usize>() == 5
    })
    .await;
    (stage, worker)
}

/// The next worker tells Redis, long after the leases have lapsed.
async fn assert_told_by_the_next(mut stage: Stage) {
    stage.redis.run();
    let other = stage.process();
    stage.await_count(BULK, State::Submitted, 5).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!((depths.of(State::Submitted), depths.of(State::Unconfirmed)), (5, 0), "{depths:?}");
    assert_delivered_once(&stage, 5);
    assert_eq!(stage.ledger().summary.requests, 5, "nothing was sent again");
    drop(other);
}

#[tokio::test]
async fn a_worker_that_is_killed_while_redis_is_away_leaves_its_acceptances_to_the_next() {
    let (stage, worker) = accepted_and_untold().await;
    worker.kill();
    assert_told_by_the_next(stage).await;
}

#[tokio::test]
async fn a_worker_that_ends_while_redis_is_away_leaves_its_acceptances_to_the_next() {
    let (stage, worker) = accepted_and_untold().await;
    worker.signal(Signal::SIGTERM);
    assert!(ended(worker).await, "it ended in order");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_told_by_the_next(stage).await;
}

/// Status and body of a plain GET; `None` where nobody listens.
async fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

#[tokio::test]
async fn a_worker_answers_whoever_watches_it() {
    let port = paceline_tests::ports::free();
    let settings = ONE_CLASS.replace("[worker]\n", &format!("[worker]\nlisten = \"127.0.0.1:{port}\"\n"));
    let mut stage = Stage::over(durable_redis(), open_door(), &settings).await;
    let worker = stage.process();
    let ask = async |path: &str| get(port, path).await;
    until("it is ready", async || ask("/readyz").await.is_some_and(|(status, _)| status == 200)).await;
    stage.push(BULK, 10).await;
    stage.await_drained(BULK).await;
    let (_, metrics) = ask("/metrics").await.expect("it answers");
    assert!(metrics.contains("paceline_attempts_total{class=\"bulk\",outcome=\"accepted\"} 10"), "{metrics}");
    stage.redis.stop();
    until("it is not ready", async || ask("/readyz").await.is_some_and(|(status, _)| status == 503)).await;
    assert_eq!(ask("/livez").await.map(|(status, _)| status), Some(200), "and alive");
    stage.redis.run();
    until("it is ready again", async || ask("/readyz").await.is_some_and(|(status, _)| status == 200)).await;
    drop(worker);
}
