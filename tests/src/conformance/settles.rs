//! settle: decisions carried out while the lease stands, and what is dropped once it does not.

use super::bench::Bench;
use super::ends::{Ending, accepted, end};
use super::scene::{HOUR_MS, Scene};
use crate::store::job;
use paceline_core::State;
use paceline_core::job::Counters;
use paceline_store::*;

/// A class with one job, `a`, that was claimed.
async fn one_claimed<'a, B: Bench>(bench: &'a B) -> (Scene<'a, B>, Batch) {
    let mut scene = Scene::new(bench).await;
    scene.push(&[NewJob { document: vec![b'x'; 5_000], campaign: "launch".into(), ..job("a") }]).await;
    let batch = scene.claim(1).await;
    (scene, batch)
}

const TARGETS: [State; 8] = [
    State::Queued,
    State::Pending,
    State::Submitted,
    State::Failed,
    State::Deferred,
    State::Unconfirmed,
    State::Expired,
    State::Cancelled,
];

pub async fn each_target_is_where_the_job_goes<B: Bench>(bench: B) {
    for target in TARGETS {
        let (mut scene, batch) = one_claimed(&bench).await;
        let delay_ms = if target.is_waiting() { 5_000 } else { 0 };
        let end = end(&batch, "a", target).after(delay_ms);
        assert_eq!(scene.settle(&[end]).await, [Settled::Moved(target)]);
        assert_eq!(scene.job("a").campaign, "launch");
        let kept = !matches!(target, State::Submitted | State::Expired | State::Cancelled);
        assert_eq!(!scene.job("a").document.is_empty(), kept, "{target}");
    }
}

pub async fn a_repeat_is_already_and_counts_nothing_twice<B: Bench>(bench: B) {
    for target in TARGETS {
        let (mut scene, batch) = one_claimed(&bench).await;
        let end = end(&batch, "a", target);
        assert_eq!(scene.settle(std::slice::from_ref(&end)).await, [Settled::Moved(target)]);
        assert_eq!(scene.settle(std::slice::from_ref(&end)).await, [Settled::Already]);
        assert_eq!(scene.settle(&[end.clone(), end]).await, [Settled::Already; 2]);
    }
}

/// The repeat may come when the job is in flight again.
pub async fn a_repeat_behind_the_next_claim_is_already_too<B: Bench>(bench: B) {
    let (mut scene, batch) = one_claimed(&bench).await;
    let first = end(&batch, "a", State::Pending);
    scene.settle(std::slice::from_ref(&first)).await;
    let batch = scene.claim(1).await;
    assert_eq!(scene.settle(&[first]).await, [Settled::Already]);
    assert_eq!(scene.settle(&[accepted(&batch, "a", "m1")]).await, [Settled::Moved(State::Submitted)]);
}

pub async fn counters_marks_and_clocks_are_what_the_decision_says<B: Bench>(bench: B) {
    let (mut scene, batch) = one_claimed(&bench).await;
    let mut told = end(&batch, "a", State::Pending).after(1).ambiguous();
    told.decision.counters = Counters { spent: 3, throttles: 300, lapses: 1, run: 4, attempts: 5 };
    told.decision.starts_throttle = true;
    told.decision.starts_window = false;
    scene.settle(&[told]).await;
    let throttled_since_ms = scene.job("a").throttled_since_ms;
    assert!(throttled_since_ms.is_some() && scene.job("a").sent_since_ms.is_none());
    scene.pass(5).await;
    let batch = scene.claim(1).await;
    let mut told = end(&batch, "a", State::Pending);
    told.decision.starts_throttle = true;
    scene.settle(&[told]).await;
    assert_eq!(scene.job("a").throttled_since_ms, throttled_since_ms, "a clock that runs is not set again");
    assert!(scene.job("a").flags.ambiguous && scene.job("a").sent_since_ms.is_some());
}

/// An age, not a state: kept through claims and returns.
pub async fn the_first_entry_into_pending_is_kept_until_it_leaves_for_good<B: Bench>(bench: B) {
    let (mut scene, batch) = one_claimed(&bench).await;
    scene.settle(&[end(&batch, "a", State::Pending)]).await;
    scene.pass(5).await;
    let batch = scene.claim(1).await;
    scene.settle(&[end(&batch, "a", State::Queued).unsent()]).await;
    let batch = scene.claim(1).await;
    scene.settle(&[end(&batch, "a", State::Pending).after(HOUR_MS)]).await;
    scene.look().await;
    assert!(bench.store().depths(&scene.class).await.unwrap().oldest_pending_ms.is_some_and(|age| age >= 5));
    scene.cancel(&["a"]).await;
    assert_eq!(bench.store().depths(&scene.class).await.unwrap().oldest_pending_ms, None);
}

pub async fn a_receipt_keeps_the_last_attempt_only<B: Bench>(bench: B) {
    let (mut scene, mut batch) = one_claimed(&bench).await;
    for _ in 0..3 {
        scene.settle(&[end(&batch, "a", State::Pending)]).await;
        batch = scene.claim(1).await;
    }
    scene.settle(&[accepted(&batch, "a", "m1")]).await;
    let job = scene.job("a");
    let ids: Vec<_> = job.history.attempts().iter().map(|attempt| attempt.message_id.as_deref()).collect();
    assert_eq!((ids, job.counters.attempts), (vec![Some("m1")], 4));
}

pub async fn an_end_behind_the_lease_counts_while_nobody_took_it_over<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let lapsed = scene.claim_and_lapse(1).await;
    assert_eq!(scene.settle(&[end(&lapsed, "a", State::Failed)]).await, [Settled::Moved(State::Failed)]);
    assert!(scene.reap(10).await.jobs.is_empty());
}

pub async fn the_end_of_a_lost_lease_that_is_no_acceptance_is_dropped<B: Bench>(bench: B) {
    for target in TARGETS.into_iter().filter(|target| *target != State::Submitted) {
        let mut scene = Scene::new(&bench).await;
        scene.push(&[job("a")]).await;
        let lapsed = scene.claim_and_lapse(1).await;
        let reaped = scene.reap(1).await;
        assert_eq!(scene.settle(&[end(&lapsed, "a", target)]).await, [Settled::Stale]);
        scene.settle(&[end(&reaped, "a", State::Unconfirmed)]).await;
        assert_eq!(scene.settle(&[end(&lapsed, "a", target)]).await, [Settled::Stale]);
    }
}

pub async fn an_end_of_an_earlier_life_is_gone_and_moves_nothing<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let lapsed = scene.claim_and_lapse(1).await;
    let reaped = scene.reap(1).await;
    scene.settle(&[end(&reaped, "a", State::Failed)]).await;
    scene.pass(2).await;
    scene.sweep(State::Failed, 1, 10).await;
    let late = [accepted(&lapsed, "a", "m1")];
    assert_eq!(scene.settle(&late).await, [Settled::Gone], "there is no record");
    scene.push(&[job("a")]).await;
    assert_eq!(scene.settle(&late).await, [Settled::Gone], "there is another");
    let batch = scene.claim(1).await;
    let other_birth = Settlement { birth: lapsed_birth(&late), ..accepted(&batch, "a", "m2") };
    assert_eq!(scene.settle(&[other_birth]).await, [Settled::Gone], "even under a lease that stands");
}

fn lapsed_birth(ends: &[Settlement]) -> [u8; 8] {
    ends[0].birth
}

pub async fn a_cancel_in_flight_takes_effect_with_the_next_end_that_is_no_acceptance<B: Bench>(bench: B) {
    let (mut scene, batch) = one_claimed(&bench).await;
    assert_eq!(scene.cancel(&["a"]).await, [Cancelled::Marked]);
    assert_eq!(scene.cancel(&["a"]).await, [Cancelled::Marked]);
    let again = end(&batch, "a", State::Pending).after(HOUR_MS);
    assert_eq!(scene.settle(&[again]).await, [Settled::Moved(State::Cancelled)]);

    let (mut scene, batch) = one_claimed(&bench).await;
    scene.cancel(&["a"]).await;
    let doubtful = end(&batch, "a", State::Pending).ambiguous();
    assert_eq!(scene.settle(&[doubtful]).await, [Settled::Moved(State::Unconfirmed)]);
    assert!(!scene.job("a").document.is_empty(), "a person may want it back");

    let (mut scene, batch) = one_claimed(&bench).await;
    scene.cancel(&["a"]).await;
    assert_eq!(scene.settle(&[accepted(&batch, "a", "m1")]).await, [Settled::Moved(State::Submitted)]);
}

/// The mark is the job's and not the lease's.
pub async fn a_cancel_outlives_a_lost_worker<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    scene.claim_and_lapse(1).await;
    scene.cancel(&["a"]).await;
    let reaped = scene.reap(1).await;
    let unsent = end(&reaped, "a", State::Queued).unsent();
    assert_eq!(scene.settle(&[unsent]).await, [Settled::Moved(State::Cancelled)]);
}

pub async fn a_key_named_twice_is_settled_in_order<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["a", "b"].map(job)).await;
    let lapsed = scene.claim_and_lapse(2).await;
    let reaped = scene.reap(2).await;
    let words = scene
        .settle(&[
            end(&reaped, "a", State::Pending),
            accepted(&lapsed, "a", "m1"),
            accepted(&lapsed, "b", "m2"),
            end(&reaped, "b", State::Pending),
            accepted(&lapsed, "a", "m1"),
        ])
        .await;
    assert_eq!(
        words,
        [
            Settled::Moved(State::Pending),
            Settled::Late(State::Pending),
            Settled::Late(State::InFlight),
            Settled::Stale,
            Settled::Already
        ]
    );
}

pub async fn nothing_to_settle_is_no_call<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    assert_eq!(scene.settle(&[]).await, []);
}
