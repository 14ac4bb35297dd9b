//! Replies that never come: the call was carried out, its caller does not know, and asks again.

use crate::support::*;
use paceline_core::State;
use paceline_store::{Claim, ClaimAsk, Pushed, RedisStore, Store};
use paceline_tests::proxy::{Fate, Proxy};
use paceline_tests::redis_server::RedisServer;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::time::Duration;

/// A stage whose workers go through a proxy, with every script loaded and twenty jobs waiting.
async fn behind_a_proxy(settings: &str) -> (Stage, Proxy) {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port()).await;
    load_scripts(&redis);
    let settings = format!("{settings}[redis]\nresponse_timeout_ms = 400\n");
    let stage = Stage::through(redis, &proxy.url(), open_door(), &settings).await;
    stage.push(BULK, 20).await;
    (stage, proxy)
}

/// All twenty were delivered with one request each, and nobody had to take anything over.
async fn assert_as_if_nothing_had_happened(stage: &Stage) {
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    assert_none_spent(stage, State::Submitted).await;
    assert_delivered_once(stage, 20);
    assert_eq!(stage.ledger().summary.requests, 20);
    let counts = counts(stage).await;
    assert_eq!(counts["202|accepted|submitted"], 20, "each end is counted once: {counts:?}");
}

#[tokio::test]
async fn a_claim_whose_reply_is_lost_is_repeated_and_gets_the_same_jobs() {
    // Once: the connection repeats it. Five times: the worker itself does, with the same nonce.
    for times in [1, 5] {
        let (stage, proxy) = behind_a_proxy(ONE_CLASS).await;
        proxy.set_trap(sha("claim"), Fate::Cut, times);
        let worker = stage.worker();
        proxy.await_sprung(times).await;
        assert_as_if_nothing_had_happened(&stage).await;
        worker.stopped().await;
    }
}

/// A load balancer forgot the connection and tells nobody: there is no end of it to wait for.
#[tokio::test]
async fn a_connection_that_went_silent_is_replaced() {
    for movement in ["claim", "settle"] {
        let (stage, proxy) = behind_a_proxy(ONE_CLASS).await;
        proxy.set_trap(sha(movement), Fate::Silence, 1);
        let worker = stage.worker();
        proxy.await_sprung(1).await;
        assert_as_if_nothing_had_happened(&stage).await;
        worker.stopped().await;
    }
}

#[tokio::test]
async fn a_settle_whose_reply_is_lost_is_repeated_and_counted_once() {
    let (stage, proxy) = behind_a_proxy(ONE_CLASS).await;
    proxy.set_trap(sha("settle"), Fate::Cut, 1);
    let worker = stage.worker();
    proxy.await_sprung(1).await;
    assert_as_if_nothing_had_happened(&stage).await;
    until("the repeat is answered", async || count(&stage, "|already|").await > 0).await;
    worker.stopped().await;
}

#[tokio::test]
async fn a_start_whose_reply_is_lost_is_repeated_and_nothing_is_written_before_its_answer() {
    let (stage, proxy) = behind_a_proxy(&forgetful(ONE_CLASS)).await;
    proxy.set_trap(sha("start"), Fate::Cut, 1);
    let worker = stage.worker();
    proxy.await_sprung(1).await;
    assert_as_if_nothing_had_happened(&stage).await;
    worker.stopped().await;
}

#[tokio::test]
async fn a_push_whose_reply_is_lost_is_answered_as_a_duplicate() {
    let (stage, proxy) = behind_a_proxy(ONE_CLASS).await;
    proxy.set_trap(sha("push"), Fate::Cut, 1);
    let timeout = Duration::from_secs(2);
    let producer =
        RedisStore::open(&proxy.url(), stage.config.namespace.clone(), timeout).expect("a good URL");
    let pushed = producer.push(&stage.class(BULK), &jobs(20..25)).await.expect("it is repeated");
    assert_eq!(pushed, vec![Pushed::Duplicate(State::Queued); 5]);
    let worker = stage.worker();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 25, "{depths:?}");
    assert_delivered_once(&stage, 25);
    worker.stopped().await;
}

/// Counters rise in the settle that follows, so what nobody heard of counts nothing.
#[tokio::test]
async fn a_reap_whose_reply_is_lost_lapses_nothing_twice() {
    let (stage, proxy) = behind_a_proxy(ONE_CLASS).await;
    let ask = ClaimAsk {
        worker: "gone".into(),
        nonce: "1".into(),
        max_jobs: 20,
        lease_ms: 100,
        lookahead_ms: 0,
        solo_lapses: 2,
    };
    assert!(matches!(stage.store.claim(&stage.class(BULK), &ask).await, Ok(Claim::Jobs(_))));
    tokio::time::sleep(Duration::from_millis(150)).await;
    proxy.set_trap(sha("reap"), Fate::Cut, 1);
    let worker = stage.worker();
    proxy.await_sprung(1).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    for job in jobs_in(&stage, State::Submitted).await {
        assert_eq!((job.counters.spent, job.counters.lapses), (0, 1), "{}", job.key);
    }
    assert_eq!(stage.ledger().summary.requests, 20);
    worker.stopped().await;
}

/// Its leases lapse while Redis refuses it: they look like a dead worker's, and are its own.
#[tokio::test]
async fn a_worker_that_cannot_write_its_outcomes_does_not_reap_them() {
    let (stage, proxy) = behind_a_proxy(ONE_CLASS).await;
    proxy.set_trap(sha("settle"), Fate::Refuse, usize::MAX);
    let worker = stage.worker();
    await_requests(&stage, 20).await;
    let lease =
        Duration::from_millis(stage.config.classes.values().map(|class| stage.config.lease_ms(class)).sum());
    tokio::time::sleep(lease + Duration::from_secs(2)).await;
    assert_eq!(stage.depths(BULK).await.of(State::InFlight), 20);
    proxy.clear_traps();
    assert_as_if_nothing_had_happened(&stage).await;
    worker.stopped().await;
}
