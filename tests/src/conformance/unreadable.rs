//! Records that are missing, newer than this version, or odd: never skipped, never a stop, parked where a person
//! sees them.

use super::bench::Bench;
use super::ends::{accepted, claimed, end, keys};
use super::scene::Scene;
use crate::store::job;
use paceline_core::State;
use paceline_store::*;

const ODDITIES: [Record; 3] = [Record::Missing, Record::Newer(9), Record::Odd];

pub async fn they_are_claimed_with_the_others_and_parked_untouched<B: Bench>(bench: B) {
    for oddity in ODDITIES {
        let mut scene = Scene::new(&bench).await;
        scene.push(&["a", "odd", "b"].map(job)).await;
        scene.plant("odd", oddity.clone()).await;
        let batch = scene.claim(10).await;
        assert_eq!(keys(&batch), ["a", "b", "odd"]);
        assert_eq!(claimed(&batch, "odd").record, oddity);
        let ends =
            [accepted(&batch, "a", "m1"), end(&batch, "odd", State::Failed), accepted(&batch, "b", "m2")];
        let submitted = Settled::Moved(State::Submitted);
        assert_eq!(scene.settle(&ends).await, [submitted, Settled::Parked, submitted]);
        assert_eq!(scene.place("odd").0, State::Deferred);
        assert_eq!(scene.settle(&ends[1..2]).await, [Settled::Gone], "a repeat finds no lease");
    }
}

pub async fn they_are_reaped_like_any_other<B: Bench>(bench: B) {
    for oddity in ODDITIES {
        let mut scene = Scene::new(&bench).await;
        scene.push(&[job("odd")]).await;
        let lapsed = scene.claim_and_lapse(1).await;
        scene.plant("odd", oddity.clone()).await;
        let batch = scene.reap(10).await;
        assert_eq!(claimed(&batch, "odd").record, oddity);
        assert_eq!(scene.start(batch.deadline_ms, &[("odd".into(), [0; 8])]).await, [false]);
        assert_eq!(scene.settle(&[accepted(&lapsed, "odd", "m1")]).await, [Settled::Gone]);
        assert_eq!(scene.settle(&[end(&batch, "odd", State::Failed)]).await, [Settled::Parked]);
    }
}

/// Rust reads with more care than Lua: what it cannot read it settles under a birth of zeros, and that parks too.
pub async fn a_birth_of_zeros_parks_what_only_lua_can_read<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let batch = scene.claim(1).await;
    let unread = Settlement { birth: [0; 8], ..end(&batch, "a", State::Failed) };
    assert_eq!(scene.settle(&[unread]).await, [Settled::Parked]);
}

pub async fn a_person_replays_them_once_someone_can_read_them<B: Bench>(bench: B) {
    for oddity in [Record::Newer(9), Record::Odd] {
        let mut scene = Scene::new(&bench).await;
        scene.push(&[job("odd")]).await;
        scene.plant("odd", oddity).await;
        let batch = scene.claim(1).await;
        scene.settle(&[end(&batch, "odd", State::Failed)]).await;
        assert_eq!(scene.replay(1.0, &[("odd", State::Deferred)]).await, [Replayed::Replayed]);
        assert_eq!(scene.push(&[job("odd")]).await, [Pushed::Conflict(State::Pending)]);
    }
}

pub async fn nothing_else_touches_them<B: Bench>(bench: B) {
    for oddity in ODDITIES {
        let mut scene = Scene::new(&bench).await;
        scene.push(&[job("odd")]).await;
        scene.plant("odd", oddity.clone()).await;
        assert_eq!(scene.cancel(&["odd"]).await, [Cancelled::Missing]);
        if oddity != Record::Missing {
            assert_eq!(scene.erase("odd").await, Erased::Missing);
        }
        let batch = scene.claim(1).await;
        assert_eq!(scene.cancel(&["odd"]).await, [Cancelled::Missing]);
        scene.settle(&[end(&batch, "odd", State::Failed)]).await;
        if oddity == Record::Missing {
            assert_eq!(scene.replay(1.0, &[("odd", State::Deferred)]).await, [Replayed::Missing]);
        }
    }
}

/// Nothing else could remove it.
pub async fn an_entry_without_a_record_leaves_by_an_erase<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("odd")]).await;
    scene.plant("odd", Record::Missing).await;
    let store = bench.store();
    assert_eq!(store.erase(&scene.class, "odd").await.unwrap(), Erased::Erased(State::Queued));
    assert_eq!(store.erase(&scene.class, "odd").await.unwrap(), Erased::Missing);
    assert_eq!(store.depths(&scene.class).await.unwrap().waiting(), 0);
}
