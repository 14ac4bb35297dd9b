//! An acceptance whose lease was lost is never thrown away.

use super::bench::Bench;
use super::ends::{Ending, accepted, end};
use super::scene::{HOUR_MS, Scene};
use crate::store::job;
use paceline_core::State;
use paceline_core::decide::{HoldCause, HoldOn};
use paceline_store::*;

/// A job whose first worker lost it to the reaper: the scene, the first lease, the second.
async fn lost<'a, B: Bench>(bench: &'a B) -> (Scene<'a, B>, Batch, Batch) {
    let mut scene = Scene::new(bench).await;
    scene.push(&[NewJob { document: vec![b'x'; 5_000], ..job("a") }]).await;
    let lapsed = scene.claim_and_lapse(1).await;
    let reaped = scene.reap(1).await;
    (scene, lapsed, reaped)
}

pub async fn wherever_the_job_is_it_becomes_submitted<B: Bench>(bench: B) {
    let elsewhere =
        State::ALL.into_iter().filter(|state| ![State::InFlight, State::Submitted].contains(state));
    for state in elsewhere {
        let (mut scene, lapsed, reaped) = lost(&bench).await;
        scene.settle(&[end(&reaped, "a", state).after(HOUR_MS)]).await;
        let late = accepted(&lapsed, "a", "m1");
        assert_eq!(scene.settle(std::slice::from_ref(&late)).await, [Settled::Late(state)]);
        assert_eq!(scene.settle(&[late]).await, [Settled::Already], "a repeat");
        assert!(scene.job("a").flags.late);
        assert_eq!((scene.place("a").0, scene.job("a").counters.attempts), (State::Submitted, 2));
    }
}

pub async fn in_flight_elsewhere_it_becomes_submitted_under_the_other_worker<B: Bench>(bench: B) {
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    assert_eq!(scene.settle(&[accepted(&lapsed, "a", "m1")]).await, [Settled::Late(State::InFlight)]);
    assert_eq!(scene.settle(&[end(&reaped, "a", State::Unconfirmed)]).await, [Settled::Stale]);
    assert_eq!(scene.claim_nothing().await, Claim::Empty { next_ms: None });
}

pub async fn a_second_acceptance_under_another_id_keeps_both<B: Bench>(bench: B) {
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    let (first, second) = (accepted(&lapsed, "a", "m1"), accepted(&reaped, "a", "m2"));
    scene.settle(std::slice::from_ref(&first)).await;
    assert_eq!(scene.settle(std::slice::from_ref(&second)).await, [Settled::Twice]);
    assert_eq!(scene.settle(&[second]).await, [Settled::Already]);
    assert_eq!(scene.settle(&[first]).await, [Settled::Already]);
    let attempts = scene.job("a").history.attempts();
    let ids: Vec<_> = attempts.iter().map(|attempt| attempt.message_id.as_deref()).collect();
    assert_eq!(ids, [Some("m1"), Some("m2")]);
}

pub async fn a_second_acceptance_under_the_same_id_or_none_is_already<B: Bench>(bench: B) {
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    scene.settle(&[accepted(&reaped, "a", "m1")]).await;
    assert_eq!(scene.settle(&[accepted(&lapsed, "a", "m1")]).await, [Settled::Already]);
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    scene.settle(&[accepted(&reaped, "a", "m1")]).await;
    assert_eq!(scene.settle(&[end(&lapsed, "a", State::Submitted)]).await, [Settled::Already]);
}

pub async fn after_a_replay_it_is_still_the_same_job<B: Bench>(bench: B) {
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    scene.settle(&[end(&reaped, "a", State::Unconfirmed)]).await;
    scene.replay(1.0, &[("a", State::Unconfirmed)]).await;
    assert_eq!(scene.settle(&[accepted(&lapsed, "a", "m1")]).await, [Settled::Late(State::Pending)]);
    assert_eq!(scene.job("a").replays, 1);
}

pub async fn after_an_erase_it_is_still_known<B: Bench>(bench: B) {
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    scene.settle(&[end(&reaped, "a", State::Deferred)]).await;
    scene.erase("a").await;
    assert_eq!(scene.settle(&[accepted(&lapsed, "a", "m1")]).await, [Settled::Late(State::Cancelled)]);
    assert_eq!(scene.job("a").document, b"");
}

/// It was sent before the hold, so it is no word about what came after.
pub async fn it_releases_no_hold_that_came_after_it<B: Bench>(bench: B) {
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    scene.will_hold(1, HoldCause::Outage, HOUR_MS, HOUR_MS);
    let down =
        end(&reaped, "a", State::Pending).holding(HoldOn::Credential, HoldCause::Outage, HOUR_MS, HOUR_MS);
    scene.settle(&[down]).await;
    assert_eq!(scene.settle(&[accepted(&lapsed, "a", "m1")]).await, [Settled::Late(State::Pending)]);
}

pub async fn a_decision_of_the_lost_lease_that_cancels_is_dropped<B: Bench>(bench: B) {
    let (mut scene, lapsed, reaped) = lost(&bench).await;
    scene.cancel(&["a"]).await;
    assert_eq!(scene.settle(&[end(&lapsed, "a", State::Pending)]).await, [Settled::Stale]);
    assert_eq!(scene.settle(&[end(&reaped, "a", State::Pending)]).await, [Settled::Moved(State::Cancelled)]);
    assert_eq!(scene.settle(&[accepted(&lapsed, "a", "m1")]).await, [Settled::Late(State::Cancelled)]);
}
