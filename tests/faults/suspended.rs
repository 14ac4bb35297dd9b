//! Workers that sleep past their lease, and ends that come too late: failures 46.

use crate::support::*;
use nix::sys::signal::Signal;
use paceline_core::State;
use paceline_core::config::{Config, Sources};
use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::ErrorAnswer;
use paceline_tests::proxy::{Fate, Proxy};
use paceline_tests::redis_server::RedisServer;
use paceline_tests::stage::{InProcess, ONE_CLASS, Process, Stage};
use std::time::Duration;

/// The time of an attempt cannot outlive its lease: the lease is the deadline plus a margin that has a floor.
#[test]
fn no_settings_make_a_deadline_as_long_as_its_lease() {
    for (deadline_ms, margin_ms) in [(1_000, 500), (2_000, 1_000), (600_000, 500), (30_000, 600_000)] {
        let settings = ONE_CLASS
            .replace("{base_url}", "http://127.0.0.1:1")
            .replace("deadline_ms = 2000", &format!("deadline_ms = {deadline_ms}"))
            .replace("lease_margin_ms = 1000", &format!("lease_margin_ms = {margin_ms}"));
        let config =
            Config::read(Sources { file: Some(("test", &settings)), environment: &[] }).expect("it is valid");
        let class = config.classes.values().next().expect("there is one");
        assert_eq!(config.lease_ms(class) - class.deadline_ms, margin_ms);
        let none = settings.replace(&format!("lease_margin_ms = {margin_ms}"), "lease_margin_ms = 0");
        assert!(Config::read(Sources { file: Some(("test", &none)), environment: &[] }).is_err());
    }
}

/// No lease runs while its job waits for a slot.
#[tokio::test]
async fn a_worker_claims_only_what_can_start_now() {
    let stage = Stage::new(slow(60), &with_class("concurrency = 2")).await;
    stage.push(BULK, 20).await;
    let worker = stage.worker();
    let mut most = 0;
    until("all are sent", async || {
        let depths = stage.depths(BULK).await;
        most = most.max(depths.of(State::InFlight));
        depths.of(State::Submitted) == 20
    })
    .await;
    assert_eq!(most, 2);
    worker.stopped().await;
}

/// A worker behind a proxy that freezes once the first claim is carried out.
async fn claimed_and_asleep(scenario: Scenario, settings: &str) -> (Stage, Proxy, Process) {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port()).await;
    load_scripts(&redis);
    let stage = Stage::through(redis, &proxy.url(), scenario, settings).await;
    stage.push(BULK, 10).await;
    proxy.set_trap(sha("claim"), Fate::Freeze, 1);
    let asleep = stage.process();
    proxy.await_sprung(1).await;
    asleep.signal(Signal::SIGSTOP);
    until("the claim is carried out", async || stage.depths(BULK).await.of(State::InFlight) == 10).await;
    (stage, proxy, asleep)
}

#[tokio::test]
async fn a_worker_that_slept_before_the_write_hands_back_instead_of_sending_late() {
    let (stage, proxy, asleep) = claimed_and_asleep(open_door(), ONE_CLASS).await;
    // Longer than half of the margin, shorter than the lease.
    tokio::time::sleep(Duration::from_millis(800)).await;
    proxy.thaw();
    asleep.signal(Signal::SIGCONT);
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 10, "{depths:?}");
    // A busy machine may be late once more.
    assert!(count(&stage, "|not_sent|queued").await >= 10, "{:?}", counts(&stage).await);
    assert_none_spent(&stage, State::Submitted).await;
    assert_delivered_once(&stage, 10);
    assert_eq!(stage.ledger().summary.requests, 10);
}

#[tokio::test]
async fn a_worker_that_slept_past_its_lease_sends_nothing_of_what_others_took_over() {
    let (mut stage, proxy, asleep) = claimed_and_asleep(open_door(), ONE_CLASS).await;
    stage.config.redis.url = stage.redis.url();
    let other = stage.worker();
    stage.await_count(BULK, State::Submitted, 10).await;
    proxy.thaw();
    asleep.signal(Signal::SIGCONT);
    // It is awake, and works, when it takes this one.
    other.stopped().await;
    push_until_taken(&stage, &stage.store, 10..11).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 11, "{depths:?}");
    assert_delivered_once(&stage, 11);
    assert_eq!(stage.ledger().summary.requests, 11, "{:?}", stage.ledger());
}

/// Ten requests on the wire; their worker sleeps past its lease and wakes once another has settled them.
async fn asleep_mid_send(scenario: Scenario, settings: &str, taken_over: State) -> (Stage, [Process; 2]) {
    let stage = Stage::new(scenario, settings).await;
    stage.push(BULK, 10).await;
    let asleep = stage.process();
    await_requests(&stage, 10).await;
    asleep.signal(Signal::SIGSTOP);
    let other = stage.process();
    stage.await_count(BULK, taken_over, 10).await;
    asleep.signal(Signal::SIGCONT);
    // Whatever its ten ends were, each is counted as what it is to the newer state.
    until("ten late ends are counted", async || {
        let counts = counts(&stage).await;
        let late =
            |code: &&String| ["|late|", "|stale|", "|already|"].iter().any(|word| code.starts_with(word));
        counts.iter().filter(|(code, _)| late(code)).map(|(_, n)| n).sum::<u64>() >= 10
    })
    .await;
    (stage, [asleep, other])
}

#[tokio::test]
async fn a_worker_that_slept_mid_send_doubles_nothing_where_the_provider_deduplicates() {
    let (stage, workers) = asleep_mid_send(slow(600), ONE_CLASS, State::Submitted).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 10, "{depths:?}");
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.counters.spent == 0));
    assert_delivered_once(&stage, 10);
    drop(workers);
}

#[tokio::test]
async fn a_worker_that_slept_mid_send_doubles_nothing_where_a_person_is_asked() {
    let scenario = Scenario { deduplicates: false, ..slow(600) };
    let (stage, workers) = asleep_mid_send(scenario, &forgetful(ONE_CLASS), State::Unconfirmed).await;
    push_until_taken(&stage, &stage.store, 10..15).await;
    let depths = stage.await_drained(BULK).await;
    let late = jobs_in(&stage, State::Submitted).await.iter().filter(|job| job.flags.late).count() as u64;
    assert_eq!(depths.of(State::Submitted), 5 + late, "{depths:?}");
    assert_eq!(depths.of(State::Unconfirmed), 10 - late, "{depths:?}");
    assert_delivered_once(&stage, 15);
    drop(workers);
}

/// Ten ends that their worker cannot write, because its way to Redis is frozen until it is thawed.
async fn ends_kept_back(scenario: Scenario, settings: &str) -> (Stage, Proxy, InProcess) {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port()).await;
    let mut stage = Stage::through(redis, &proxy.url(), scenario, settings).await;
    stage.push(BULK, 10).await;
    let cut_off = stage.worker();
    await_requests(&stage, 10).await;
    proxy.freeze();
    stage.config.redis.url = stage.redis.url();
    (stage, proxy, cut_off)
}

#[tokio::test]
async fn an_acceptance_that_comes_after_its_lease_still_makes_the_job_submitted() {
    let scenario = Scenario { deduplicates: false, ..slow(300) };
    let (stage, proxy, cut_off) = ends_kept_back(scenario, &forgetful(ONE_CLASS)).await;
    let other = stage.worker();
    stage.await_count(BULK, State::Unconfirmed, 10).await;
    proxy.thaw();
    stage.await_count(BULK, State::Submitted, 10).await;
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.flags.late));
    let counts = counts(&stage).await;
    assert_eq!((counts["|late|unconfirmed"], counts["202|accepted|submitted"]), (10, 10), "{counts:?}");
    assert_delivered_once(&stage, 10);
    drop((cut_off, other));
}

#[tokio::test]
async fn where_the_class_chose_to_repeat_both_acceptances_are_kept() {
    let scenario = Scenario { deduplicates: false, ..slow(300) };
    let settings = forgetful(&with_class("on_ambiguous = \"retry\""));
    let (stage, proxy, cut_off) = ends_kept_back(scenario, &settings).await;
    let other = stage.worker();
    stage.await_count(BULK, State::Submitted, 10).await;
    proxy.thaw();
    until("they are counted", async || count(&stage, "|twice|submitted").await == 10).await;
    for job in jobs_in(&stage, State::Submitted).await {
        let ids: Vec<_> =
            job.history.attempts().iter().filter_map(|attempt| attempt.message_id.clone()).collect();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{}: {ids:?}", job.key);
    }
    assert_eq!(stage.ledger().summary.duplicates, 10, "that was the choice");
    drop((cut_off, other));
}

#[tokio::test]
async fn a_stale_refusal_is_counted_and_cannot_undo_the_newer_acceptance() {
    let refusing = Scenario { always: Some(ErrorAnswer::new(422)), ..slow(300) };
    let (stage, proxy, cut_off) = ends_kept_back(refusing, ONE_CLASS).await;
    stage.sandbox.set_scenario(open_door()).expect("it is valid");
    let other = stage.worker();
    stage.await_count(BULK, State::Submitted, 10).await;
    let before = jobs_in(&stage, State::Submitted).await;
    proxy.thaw();
    // More than ten: the worker asked again and again while it was cut off, and each was heard in the end.
    until("they are counted", async || count(&stage, "|stale|").await >= 10).await;
    assert_eq!(jobs_in(&stage, State::Submitted).await, before, "not a byte of the newer state changed");
    assert_delivered_once(&stage, 10);
    drop((cut_off, other));
}
