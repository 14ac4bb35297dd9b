//! start and reap: whose a job is, and until when.

use super::bench::Bench;
use super::ends::{end, keys, marks};
use super::scene::Scene;
use crate::store::job;
use paceline_core::State;
use paceline_store::*;

pub async fn a_start_is_marked_for_the_lease_and_the_birth_it_was_claimed_under<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["a", "b", "waiting"].map(job)).await;
    let batch = scene.claim(2).await;
    let mut marks = marks(&batch);
    marks[1].1[7] ^= 1;
    marks.push(("waiting".into(), scene.job("waiting").birth));
    marks.push(("nobody".into(), [0; 8]));
    assert_eq!(scene.start(batch.deadline_ms, &marks).await, [true, false, false, false]);
    assert_eq!(scene.start(batch.deadline_ms, &marks).await, [true, false, false, false]);
    assert_eq!(scene.start(batch.deadline_ms + 1, &marks[..1]).await, [false]);
    assert!(scene.start(batch.deadline_ms, &[]).await.is_empty());
}

pub async fn a_start_after_the_lease_has_lapsed_is_stale<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let batch = scene.claim_and_lapse(1).await;
    assert_eq!(scene.start(batch.deadline_ms, &marks(&batch)).await, [false]);
}

pub async fn only_lapsed_leases_are_taken_over_and_the_new_one_fences_the_old_worker<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["a", "b"].map(job)).await;
    let lapsed = scene.claim_and_lapse(1).await;
    scene.claim(1).await;
    let batch = scene.reap(10).await;
    assert_eq!(keys(&batch), ["a"]);
    assert!(batch.deadline_ms > lapsed.deadline_ms);
    assert_eq!(scene.start(lapsed.deadline_ms, &marks(&lapsed)).await, [false]);
    assert_eq!(scene.settle(&[end(&lapsed, "a", State::Pending)]).await, [Settled::Stale]);
    assert_eq!(keys(&scene.reap(10).await), [""; 0], "both leases stand");
    assert_eq!(scene.settle(&[end(&batch, "a", State::Pending)]).await, [Settled::Moved(State::Pending)]);
}

pub async fn a_reap_whose_answer_is_lost_counts_nothing<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    scene.claim_and_lapse(1).await;
    for _ in 0..3 {
        let lost = scene.reap_for(10, 1).await;
        assert_eq!(keys(&lost), ["a"]);
        assert_eq!(scene.job("a").counters.lapses, 0);
        scene.pass(2).await;
    }
    let batch = scene.reap(10).await;
    let mut lapsed = end(&batch, "a", State::Pending);
    lapsed.decision.counters.lapses = 1;
    scene.settle(&[lapsed]).await;
}

pub async fn a_reap_is_bounded_and_takes_the_oldest_first<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    for key in ["c", "b", "a"] {
        scene.push(&[job(key)]).await;
        scene.claim_and_lapse(1).await;
    }
    assert_eq!(keys(&scene.reap(2).await), ["c", "b"]);
    assert_eq!(keys(&scene.reap(2).await), ["a"]);
}

/// A lapsed lease with the mark of a start is ambiguous, one without it was never sent.
pub async fn the_mark_of_a_start_outlives_the_lease<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["a", "b"].map(job)).await;
    // As long as it takes: on a busy machine a short lease lapses before the start.
    let mut lease_ms = 50;
    let batch = loop {
        let ask = ClaimAsk { lease_ms, ..scene.ask(2) };
        let batch = scene.claim_jobs(&ask).await;
        let started = scene.start(batch.deadline_ms, &marks(&batch)[..1]).await == [true];
        scene.pass(batch.deadline_ms.saturating_sub(scene.now_ms())).await;
        let reaped = scene.reap_for(10, 1).await;
        assert_eq!(keys(&reaped), ["a", "b"]);
        if started {
            break reaped;
        }
        scene.settle(&["a", "b"].map(|key| end(&reaped, key, State::Queued))).await;
        lease_ms *= 4;
    };
    assert_eq!([scene.job("a").flags.started, scene.job("b").flags.started], [true, false]);
    scene.settle(&[end(&batch, "a", State::Pending), end(&batch, "b", State::Queued)]).await;
    assert!(!scene.job("a").flags.started, "it ends with the attempt");
}
