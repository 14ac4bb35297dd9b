//! What ends say about their sender: runs of bad ones put holds on it.

use super::bench::Bench;
use super::ends::{Ending, accepted, end, keys};
use super::scene::{HOUR_MS, Scene};
use crate::store::job;
use paceline_core::State;
use paceline_core::decide::{HoldCause, Signal};
use paceline_store::*;

/// `n` jobs in flight, `0` to `n-1`.
async fn in_flight<B: Bench>(scene: &mut Scene<'_, B>, n: usize) -> Batch {
    let jobs: Vec<NewJob> = (0..n).map(|i| job(&format!("{i:02}"))).collect();
    scene.push(&jobs).await;
    scene.claim(n).await
}

/// The ends of jobs `from..to`, all saying the same.
fn ends(batch: &Batch, from: usize, to: usize, target: State, signal: Signal) -> Vec<Settlement> {
    keys(batch)[from..to].iter().map(|key| end(batch, key, target).after(HOUR_MS).saying(signal)).collect()
}

const SUSPECT: HoldCause = HoldCause::Suspect;

pub async fn the_third_refusal_suspects_the_credential_and_the_fourth_is_decided_again<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, 6).await;
    let refused = ends(&batch, 0, 5, State::Failed, Signal::Refused);
    scene.will_hold(1, SUSPECT, scene.trips.suspect_probe_ms, scene.trips.suspect_probe_ms);
    let (failed, held) = (Settled::Moved(State::Failed), Settled::Held(SUSPECT));
    assert_eq!(scene.settle(&refused[..4]).await, [failed, failed, failed, held]);
    // Decided again: back to pending, and the run does not grow by it.
    let mut again = ends(&batch, 3, 5, State::Pending, Signal::Refused);
    again.iter_mut().for_each(|end| end.decided_again = true);
    let until_ms = scene.hold_until_ms(1);
    assert_eq!(scene.settle(&again).await, [Settled::Moved(State::Pending); 2]);
    assert_eq!(scene.hold_until_ms(1), until_ms);
    scene.will_release(1);
    let now_ms = scene.now_ms();
    scene.settle(&[accepted(&batch, "05", "m1").claimed_at(now_ms)]).await;
}

pub async fn an_acceptance_between_ends_a_run_of_refusals<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, 6).await;
    let mut told = ends(&batch, 0, 5, State::Failed, Signal::Refused);
    told[2] = accepted(&batch, "02", "m1");
    scene.settle(&told).await;
    scene.will_hold(1, SUSPECT, scene.trips.suspect_probe_ms, scene.trips.suspect_probe_ms);
    scene.settle(&ends(&batch, 5, 6, State::Failed, Signal::Refused)).await;
}

pub async fn twenty_terminal_ends_in_a_row_hold_the_class<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, 41).await;
    scene.settle(&ends(&batch, 0, 19, State::Failed, Signal::Terminal)).await;
    scene.settle(&[accepted(&batch, "19", "m1")]).await;
    scene.settle(&ends(&batch, 20, 39, State::Failed, Signal::Terminal)).await;
    // A throttle between is no acceptance.
    scene.settle(&ends(&batch, 39, 40, State::Pending, Signal::Throttled)).await;
    scene.will_hold(0, SUSPECT, scene.trips.suspect_probe_ms, scene.trips.suspect_probe_ms);
    scene.settle(&ends(&batch, 40, 41, State::Failed, Signal::Terminal)).await;
}

pub async fn five_failing_ends_in_a_row_are_an_outage_that_stays_as_it_is<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.trips.outage_probe_ms = HOUR_MS;
    let batch = in_flight(&mut scene, 7).await;
    scene.settle(&ends(&batch, 0, 4, State::Pending, Signal::Failing)).await;
    scene.will_hold(1, HoldCause::Outage, HOUR_MS, HOUR_MS);
    scene.settle(&ends(&batch, 4, 5, State::Pending, Signal::Failing)).await;
    let until_ms = scene.hold_until_ms(1);
    scene.settle(&ends(&batch, 5, 7, State::Pending, Signal::Failing)).await;
    assert_eq!(scene.hold_until_ms(1), until_ms, "those that were under way do not lengthen it");
}

pub async fn any_word_from_the_remote_side_ends_an_outage_and_its_run<B: Bench>(bench: B) {
    for word in [Signal::Throttled, Signal::Refused, Signal::Terminal, Signal::Clean] {
        let mut scene = Scene::new(&bench).await;
        let batch = in_flight(&mut scene, 11).await;
        scene.settle(&ends(&batch, 0, 4, State::Pending, Signal::Failing)).await;
        scene.settle(&ends(&batch, 4, 5, State::Failed, word)).await;
        scene.settle(&ends(&batch, 5, 9, State::Pending, Signal::Failing)).await;
        scene.will_hold(1, HoldCause::Outage, scene.trips.outage_probe_ms, scene.trips.outage_probe_ms);
        scene.settle(&ends(&batch, 9, 10, State::Pending, Signal::Failing)).await;
        scene.will_release(1);
        let now_ms = scene.now_ms();
        let last = ends(&batch, 10, 11, State::Failed, word).remove(0).claimed_at(now_ms);
        scene.settle(&[last]).await;
    }
}

pub async fn an_end_that_tells_nothing_changes_no_run<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, 7).await;
    scene.settle(&ends(&batch, 0, 4, State::Pending, Signal::Failing)).await;
    scene.settle(&ends(&batch, 4, 6, State::Pending, Signal::None)).await;
    scene.will_hold(1, HoldCause::Outage, scene.trips.outage_probe_ms, scene.trips.outage_probe_ms);
    scene.settle(&ends(&batch, 6, 7, State::Pending, Signal::Failing)).await;
}

pub async fn a_repeat_and_a_stale_end_change_no_run<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("stale")]).await;
    let lapsed = scene.claim_and_lapse(1).await;
    scene.reap(1).await;
    let batch = in_flight(&mut scene, 4).await;
    let refused = ends(&batch, 0, 2, State::Failed, Signal::Refused);
    scene.settle(&refused).await;
    assert_eq!(scene.settle(&refused).await, [Settled::Already; 2]);
    let stale = end(&lapsed, "stale", State::Failed).saying(Signal::Refused);
    assert_eq!(scene.settle(&[stale]).await, [Settled::Stale]);
    scene.will_hold(1, SUSPECT, scene.trips.suspect_probe_ms, scene.trips.suspect_probe_ms);
    scene.settle(&ends(&batch, 2, 3, State::Failed, Signal::Refused)).await;
}
