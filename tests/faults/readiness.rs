//! What a worker says of itself while something else is wrong, and how it hears of pushes.

use crate::support::*;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::time::{Duration, Instant};

/// Every slot waits for a silent provider, longer than a worker may go without a claim. That is the provider's
/// trouble: a worker that called itself not ready would take its own API away from producers.
#[tokio::test]
async fn a_worker_whose_slots_are_all_taken_is_ready() {
    let settings = with_class("concurrency = 1")
        .replace("poll_ms = 500", "poll_ms = 50")
        .replace("deadline_ms = 2000", "deadline_ms = 6500")
        .replace("first_byte_timeout_ms = 1500", "first_byte_timeout_ms = 6500");
    let stage = Stage::new(Scenario { hang_share: 1.0, ..open_door() }, &settings).await;
    stage.push(BULK, 2).await;
    let worker = stage.worker();
    await_requests(&stage, 1).await;
    until("the first one is given up", async || {
        assert_eq!(worker.health.problem(), None);
        stage.sandbox.summary().requests == 2
    })
    .await;
    worker.tell_to_abort();
    worker.stopped().await;
}

/// failures 55: Redis may end a blocked call with an error. A worker that then stopped listening would sleep
/// until its poll, which here is longer than this test waits.
#[tokio::test]
async fn a_blocking_wait_that_redis_ends_with_an_error_is_begun_again() {
    let stage = Stage::new(open_door(), &ONE_CLASS.replace("poll_ms = 500", "poll_ms = 60000")).await;
    let worker = stage.worker();
    let mut connection = stage.redis.connection();
    for round in 0..3 {
        until("it waits, and is unblocked", async || {
            let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut connection).expect("it runs");
            let waiting = list.lines().find(|line| line.contains("cmd=blpop"));
            let id = waiting.and_then(|line| line.strip_prefix("id=")?.split(' ').next());
            let Some(id) = id else { return false };
            let unblock =
                redis::cmd("CLIENT").arg("UNBLOCK").arg(id).arg("ERROR").query::<u64>(&mut connection);
            unblock.expect("it runs") == 1
        })
        .await;
        let pushed = Instant::now();
        push_until_taken(&stage, &stage.store, round * 5..(round + 1) * 5).await;
        stage.await_count(BULK, State::Submitted, (round as u64 + 1) * 5).await;
        assert!(pushed.elapsed() < Duration::from_secs(30), "it heard of the push by its poll only");
    }
    assert_delivered_once(&stage, 15);
    worker.stopped().await;
}
