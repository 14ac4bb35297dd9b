//! Workers that die: SIGKILL mid-send, before the write, in a rolling restart. Each is a process of its own.

use crate::support::*;
use nix::sys::signal::Signal;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_store::{Cancelled, Claim, ClaimAsk, Store};
use paceline_tests::proxy::{Fate, Proxy};
use paceline_tests::redis_server::RedisServer;
use paceline_tests::stage::{ONE_CLASS, Process, Stage};
use std::time::Duration;

/// failures 50 with the kill after the write: one attempt allowed, and a deploy does not use it up.
#[tokio::test]
async fn twenty_sends_of_a_killed_worker_are_taken_over_and_delivered_once() {
    let stage = Stage::new(slow(800), &with_class("max_spent = 1")).await;
    stage.push(BULK, 20).await;
    let tally = Tally::of(&stage, 20);
    let killed = stage.process();
    await_requests(&stage, 20).await;
    killed.kill();
    assert_eq!(stage.depths(BULK).await.of(State::InFlight), 20, "they wait for their lease");
    let _second = stage.process();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    for job in jobs_in(&stage, State::Submitted).await {
        // Two leases: the one that lapsed and the one that ended it.
        let counters = job.counters;
        assert_eq!((counters.spent, counters.lapses, counters.attempts), (0, 1, 2), "{}", job.key);
    }
    assert_delivered_once(&stage, 20);
    assert_eq!(stage.ledger().summary.repeats_deduplicated, 20);
    tally.was_right().await;
}

#[tokio::test]
async fn where_nobody_deduplicates_a_killed_worker_doubles_nothing() {
    let scenario = Scenario { deduplicates: false, ..slow(800) };
    let stage = Stage::new(scenario, &forgetful(&with_class("concurrency = 20\nmax_spent = 1"))).await;
    stage.push(BULK, 60).await;
    let tally = Tally::of(&stage, 60);
    let killed = stage.process();
    await_requests(&stage, 20).await;
    killed.kill();
    let in_flight = jobs_in(&stage, State::InFlight).await;
    let started = in_flight.iter().filter(|job| job.flags.started).count() as u64;
    let _second = stage.process();
    let depths = stage.await_drained(BULK).await;
    let (submitted, unconfirmed) = (depths.of(State::Submitted), depths.of(State::Unconfirmed));
    assert_eq!(submitted + unconfirmed, 60, "{depths:?}");
    assert!((1..=started).contains(&unconfirmed), "{unconfirmed} unconfirmed, {started} started");
    assert_delivered_once(&stage, 60);
    for job in jobs_in(&stage, State::Unconfirmed).await {
        assert_eq!((job.counters.spent, job.counters.lapses), (0, 1));
        assert_eq!(job.history.last().expect("its attempt is on record").reason, "worker_lost");
    }
    tally.was_right().await;
}

/// failures 50 with the kill before the write: it is as if nothing had been claimed.
#[tokio::test]
async fn a_worker_killed_before_it_writes_costs_its_jobs_nothing() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port()).await;
    load_scripts(&redis);
    let scenario = Scenario { deduplicates: false, ..open_door() };
    let mut stage =
        Stage::through(redis, &proxy.url(), scenario, &forgetful(&with_class("max_spent = 1"))).await;
    stage.push(BULK, 10).await;
    proxy.set_trap(sha("start"), Fate::Swallow, usize::MAX);
    let killed = stage.process();
    proxy.await_sprung(1).await;
    killed.kill();
    assert_eq!(stage.depths(BULK).await.of(State::InFlight), 10);
    stage.config.redis.url = stage.redis.url();
    let _second = stage.process();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 10, "{depths:?}");
    for job in jobs_in(&stage, State::Submitted).await {
        assert_eq!((job.counters.spent, job.counters.lapses, job.counters.attempts), (0, 1, 1));
    }
    assert_delivered_once(&stage, 10);
    assert_eq!(stage.ledger().summary.requests, 10, "none was ever sent twice");
}

/// failures 49: active is cancellable, and a cancel outlives the worker that had the job.
#[tokio::test]
async fn a_job_cancelled_in_flight_is_not_sent_again_after_its_worker_died() {
    let stage = Stage::new(open_door(), ONE_CLASS).await;
    stage.push(BULK, 1).await;
    let class = stage.class(BULK);
    let ask = ClaimAsk {
        worker: "gone".into(),
        nonce: "1".into(),
        max_jobs: 1,
        lease_ms: 200,
        lookahead_ms: 0,
        solo_lapses: 2,
    };
    assert!(matches!(stage.store.claim(&class, &ask).await, Ok(Claim::Jobs(_))));
    let cancelled = stage.store.cancel(&class, &["bulk:0".to_owned()]).await.expect("redis runs");
    assert_eq!(cancelled, [Cancelled::Marked]);
    let worker = stage.worker();
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Unconfirmed), 1, "its worker may have sent it: {depths:?}");
    assert_eq!(stage.ledger().summary.requests, 0);
    worker.stopped().await;
}

/// Two workers, each replaced twice in order while jobs keep coming.
#[tokio::test]
async fn a_rolling_restart_under_load_is_as_if_nothing_had_happened() {
    let stage = Stage::new(slow(60), ONE_CLASS).await;
    let mut workers = [stage.process(), stage.process()];
    let pushing = async {
        for chunk in 0..30 {
            push_until_taken(&stage, &stage.store, chunk * 10..(chunk + 1) * 10).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let restarting = async {
        for round in 0..4 {
            await_requests(&stage, 40 + round * 50).await;
            let old = std::mem::replace(&mut workers[round as usize % 2], stage.process());
            old.signal(Signal::SIGTERM);
            assert!(ended(old).await, "a worker that finished in time ends with 0");
        }
    };
    tokio::join!(pushing, restarting);
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 300, "{depths:?}");
    assert_delivered_once(&stage, 300);
    assert_eq!(stage.ledger().summary.requests, 300, "nothing was sent twice");
    assert_none_spent(&stage, State::Submitted).await;
    drop(workers);
}

/// Waits for a process without holding up this thread, on which the sandbox and the pushes run.
pub(crate) async fn ended(process: Process) -> bool {
    tokio::task::spawn_blocking(|| process.ended()).await.expect("waiting does not panic")
}

#[test]
fn no_process_outlives_its_test() {
    let test = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it builds");
        runtime.block_on(async {
            let stage = Stage::new(open_door(), ONE_CLASS).await;
            let process = stage.process();
            let id = process.id();
            // As if the test had been killed where it stood: nobody drops anything.
            std::mem::forget(process);
            id
        })
    });
    let id = test.join().expect("it does not panic");
    paceline_tests::redis_server::eventually(PATIENCE, || {
        // Nobody waits for this one, so it stays in the table as a zombie.
        std::fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |stat| stat.contains(") Z "))
    });
}
