//! replay: dead letters back to pending, paced.

use super::bench::Bench;
use super::ends::{Ending, end};
use super::pushes::one_everywhere;
use super::scene::{HOUR_MS, Scene};
use crate::store::job;
use paceline_core::State;
use paceline_core::job::Counters;
use paceline_store::*;

/// Dead letters of these keys, all deferred.
async fn deferred<'a, B: Bench>(bench: &'a B, names: &[&str]) -> Scene<'a, B> {
    let mut scene = Scene::new(bench).await;
    scene.push(&names.iter().map(|key| job(key)).collect::<Vec<_>>()).await;
    let batch = scene.claim(names.len()).await;
    let dead = |key: &&str| {
        let mut dead = end(&batch, key, State::Deferred).ambiguous();
        dead.decision.counters = Counters { spent: 8, throttles: 9, lapses: 2, run: 3, attempts: 12 };
        dead.decision.starts_throttle = true;
        dead
    };
    scene.settle(&names.iter().map(dead).collect::<Vec<_>>()).await;
    scene
}

pub async fn counters_start_anew_and_what_happened_is_kept<B: Bench>(bench: B) {
    let mut scene = deferred(&bench, &["a"]).await;
    let before = scene.job("a").clone();
    assert_eq!(scene.replay(5.0, &[("a", State::Deferred)]).await, [Replayed::Replayed]);
    let after = scene.job("a");
    assert_eq!(after.counters, Counters { attempts: 12, ..Counters::default() });
    assert_eq!((after.replays, after.throttled_since_ms), (1, None));
    assert_eq!(
        (&after.history, after.birth, after.revision, after.sent_since_ms, after.flags),
        (&before.history, before.birth, before.revision, before.sent_since_ms, before.flags)
    );
    let batch = scene.claim(1).await;
    scene.settle(&[end(&batch, "a", State::Deferred)]).await;
    scene.replay(5.0, &[("a", State::Deferred)]).await;
    assert_eq!(scene.job("a").replays, 2);
}

pub async fn one_goes_per_interval_also_over_several_calls<B: Bench>(bench: B) {
    let mut scene = deferred(&bench, &["a", "b", "c", "d", "e"]).await;
    let dead = |key: &'static str| (key, State::Deferred);
    scene.replay(1_000.25, &["a", "b", "c"].map(dead)).await;
    let at = |scene: &Scene<'_, B>, key: &str| scene.place(key).1;
    let first_ms = at(&scene, "a");
    assert_eq!([at(&scene, "b") - first_ms, at(&scene, "c") - first_ms], [1_000, 2_000]);
    scene.replay(10.0, &["d", "e"].map(dead)).await;
    // The slot behind three intervals, kept in whole ms.
    assert_eq!([at(&scene, "d") - first_ms, at(&scene, "e") - first_ms], [3_001, 3_011]);
}

pub async fn a_slot_of_long_ago_holds_nobody_up<B: Bench>(bench: B) {
    let mut scene = deferred(&bench, &["a", "b"]).await;
    scene.replay(1.0, &[("a", State::Deferred)]).await;
    scene.pass(20).await;
    let before_ms = scene.now_ms();
    scene.replay(1.0, &[("b", State::Deferred)]).await;
    assert!(scene.place("b").1 >= before_ms);
}

pub async fn two_operators_at_once_replay_a_job_once<B: Bench>(bench: B) {
    let mut scene = deferred(&bench, &["a"]).await;
    let dead = ("a", State::Deferred);
    let twice = scene.replay(HOUR_MS as f64, &[dead, dead]).await;
    assert_eq!(twice, [Replayed::Replayed, Replayed::Moved(Some(State::Pending))]);
    assert_eq!(scene.replay(1.0, &[dead]).await, [Replayed::Moved(Some(State::Pending))]);
    let nobody = ("nobody", State::Deferred);
    assert_eq!(scene.replay(1.0, &[nobody]).await, [Replayed::Moved(None)]);
    assert_eq!(scene.replay(1.0, &[]).await, []);
}

/// A receipt has no content to send, and what is waiting or in flight needs no replay.
pub async fn only_dead_letters_and_failed_jobs_come_back<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    one_everywhere(&mut scene).await;
    for state in State::ALL {
        let word = match state {
            State::Failed | State::Deferred | State::Unconfirmed => Replayed::Replayed,
            _ => Replayed::Moved(Some(state)),
        };
        assert_eq!(scene.replay(0.0, &[(state.as_str(), state)]).await, [word], "{state}");
    }
}

pub async fn a_job_whose_content_was_erased_stays_where_it_is<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let batch = scene.claim(1).await;
    scene.settle(&[end(&batch, "a", State::Failed)]).await;
    assert_eq!(scene.erase("a").await, Erased::Erased(State::Failed));
    assert_eq!(scene.replay(1.0, &[("a", State::Failed)]).await, [Replayed::Missing]);
}
