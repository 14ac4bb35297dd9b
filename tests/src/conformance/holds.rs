//! Holds: a person's, and those that decisions order.

use super::bench::Bench;
use super::ends::{Ending, accepted, end, keys};
use super::scene::{HOUR_MS, Scene, fresh_name};
use crate::store::{class, class_with, job, name};
use paceline_core::State;
use paceline_core::decide::{HoldCause, HoldOn, Probe, Signal};
use paceline_store::*;

const MINUTE_MS: u64 = 60_000;

/// A claim is silenced by a hold; for how long.
async fn silence<B: Bench>(scene: &mut Scene<'_, B>, cause: HoldCause) -> Option<u64> {
    match scene.claim_nothing().await {
        Claim::Wait { ms, term } => {
            assert_eq!(term, format!("hold:{cause}"));
            ms
        }
        other => panic!("{other:?}"),
    }
}

/// A job in flight for each of these keys.
async fn in_flight<B: Bench>(scene: &mut Scene<'_, B>, names: &[&str]) -> Batch {
    scene.push(&names.iter().map(|key| job(key)).collect::<Vec<_>>()).await;
    let batch = scene.claim(names.len()).await;
    assert_eq!(keys(&batch), names);
    batch
}

pub async fn a_person_holds_a_class_and_lifts_it<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    scene.hold(Some(HoldCause::Pause), None, "ada").await;
    assert_eq!(silence(&mut scene, HoldCause::Pause).await, None);
    scene.hold(Some(HoldCause::Window), Some(HOUR_MS), "bob").await;
    let ms = silence(&mut scene, HoldCause::Window).await;
    assert!(ms.is_some_and(|ms| ms <= HOUR_MS && ms > HOUR_MS / 2), "{ms:?}");
    scene.hold(None, None, "ada").await;
    assert_eq!(scene.claim(1).await.probe, None);
}

pub async fn a_pause_with_an_end_ends_by_itself<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a"), job("b")]).await;
    scene.hold(Some(HoldCause::Pause), Some(20), "ada").await;
    scene.pass(20).await;
    let batch = scene.claim(10).await;
    assert_eq!((keys(&batch), batch.probe), (vec!["a", "b"], None), "a person's hold does not probe");
}

/// failures 74: what waited behind a hold does not go out all at once.
pub async fn a_hold_releases_at_the_pace_and_not_with_a_burst<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "1/h", 10, 0)).await;
    scene.push(&["a", "b", "c"].map(job)).await;
    scene.hold_budget(0, Some(HoldCause::Pause), Some(50), "ada").await;
    let ms = silence(&mut scene, HoldCause::Pause).await;
    scene.pass(ms.unwrap_or_default()).await;
    assert_eq!(keys(&scene.claim(10).await), ["a"], "one at its end, the others at the pace");
}

pub async fn a_hold_on_a_budget_silences_every_class_that_spends_from_it<B: Bench>(bench: B) {
    let one = class(&fresh_name());
    let two = ClassRef { class: name(&fresh_name()), ..one.clone() };
    let (mut one, mut two) = (Scene::of(&bench, one).await, Scene::of(&bench, two).await);
    one.push(&[job("a")]).await;
    two.push(&[job("a")]).await;
    one.hold_budget(0, Some(HoldCause::Pause), None, "ada").await;
    two.holds[1].clone_from(&one.holds[1]);
    assert_eq!(silence(&mut one, HoldCause::Pause).await, None);
    assert_eq!(silence(&mut two, HoldCause::Pause).await, None);
    // The class's own hold is named first.
    two.hold(Some(HoldCause::Window), None, "ada").await;
    assert_eq!(silence(&mut two, HoldCause::Window).await, None);
}

pub async fn at_the_end_of_a_probing_hold_one_job_goes_and_the_hold_stands_again<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, &["a"]).await;
    scene.push(&["b", "c", "d"].map(job)).await;
    scene.will_hold(1, HoldCause::RetryAfter, 20, HOUR_MS);
    let asked = end(&batch, "a", State::Pending).after(HOUR_MS);
    scene.settle(&[asked.holding(HoldOn::Credential, HoldCause::RetryAfter, 20, HOUR_MS)]).await;
    scene.pass(20).await;
    scene.will_hold(1, HoldCause::RetryAfter, HOUR_MS, HOUR_MS);
    let ask = scene.ask(10);
    let batch = scene.claim_jobs(&ask).await;
    let probe = Some(Probe { cause: HoldCause::RetryAfter, interval_ms: HOUR_MS });
    assert_eq!((keys(&batch), batch.probe), (vec!["b"], probe));
    assert!(silence(&mut scene, HoldCause::RetryAfter).await.is_some());
    // A repeat is the same probe: what becomes of it is decided by that.
    let again = scene.claim_jobs(&ask).await;
    assert_eq!((keys(&again), again.probe), (vec!["b"], probe));
}

pub async fn an_acceptance_releases_what_probes_and_no_pause<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, &["a", "b", "c"]).await;
    scene.will_hold(0, HoldCause::Suspect, MINUTE_MS, MINUTE_MS);
    scene.will_hold(1, HoldCause::Quota, HOUR_MS, MINUTE_MS);
    scene
        .settle(&[
            end(&batch, "a", State::Pending).holding(
                HoldOn::Credential,
                HoldCause::Quota,
                HOUR_MS,
                MINUTE_MS,
            ),
            end(&batch, "b", State::Pending).holding(HoldOn::Class, HoldCause::Suspect, MINUTE_MS, MINUTE_MS),
        ])
        .await;
    scene.hold(Some(HoldCause::Pause), None, "ada").await;
    scene.will_release(1);
    let now_ms = scene.now_ms();
    scene.settle(&[accepted(&batch, "c", "m1").claimed_at(now_ms)]).await;
    assert_eq!(silence(&mut scene, HoldCause::Pause).await, None);
}

pub async fn a_hold_that_does_not_probe_outlasts_an_acceptance<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, &["a", "b"]).await;
    scene.will_hold(1, HoldCause::RetryAfter, HOUR_MS, 0);
    let asked =
        end(&batch, "a", State::Pending).holding(HoldOn::Credential, HoldCause::RetryAfter, HOUR_MS, 0);
    scene.settle(&[asked, accepted(&batch, "b", "m1")]).await;
    assert!(silence(&mut scene, HoldCause::RetryAfter).await.is_some());
}

pub async fn automatic_holds_only_extend<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, &["a", "b", "c", "d"]).await;
    let asked = |key: &str, ms: u64| {
        end(&batch, key, State::Pending).holding(HoldOn::Credential, HoldCause::RetryAfter, ms, 0)
    };
    scene.will_hold(1, HoldCause::RetryAfter, MINUTE_MS, 0);
    scene.settle(&[asked("a", MINUTE_MS)]).await;
    let until_ms = scene.hold_until_ms(1);
    scene.settle(&[asked("b", MINUTE_MS / 2)]).await;
    assert_eq!(scene.hold_until_ms(1), until_ms, "a shorter wait changes nothing");
    scene.will_hold(1, HoldCause::RetryAfter, HOUR_MS, 0);
    scene.settle(&[asked("c", HOUR_MS)]).await;
    scene.hold_budget(0, Some(HoldCause::Pause), Some(2 * HOUR_MS), "ada").await;
    scene.settle(&[asked("d", 3 * HOUR_MS)]).await;
    assert!(silence(&mut scene, HoldCause::Pause).await.is_some_and(|ms| ms <= 2 * HOUR_MS));
}

pub async fn a_hold_goes_where_the_decision_says<B: Bench>(bench: B) {
    let mut with_account = class(&fresh_name());
    with_account.budgets.push(class_with(&fresh_name(), "1000/s", 100, 0).budgets.remove(0));
    let mut scene = Scene::of(&bench, with_account).await;
    let batch = in_flight(&mut scene, &["a", "b", "c"]).await;
    let order = |key: &str, on: HoldOn, ms: u64| {
        end(&batch, key, State::Pending).holding(on, HoldCause::RetryAfter, ms, 0)
    };
    scene.will_hold(0, HoldCause::RetryAfter, HOUR_MS, 0);
    scene.will_hold(1, HoldCause::RetryAfter, 2 * HOUR_MS, 0);
    scene.will_hold(2, HoldCause::RetryAfter, 3 * HOUR_MS, 0);
    scene
        .settle(&[
            order("a", HoldOn::Class, HOUR_MS),
            order("b", HoldOn::Credential, 2 * HOUR_MS),
            order("c", HoldOn::Account, 3 * HOUR_MS),
        ])
        .await;
    // Where there is no account its hold is the credential's.
    let mut scene = Scene::new(&bench).await;
    let batch = in_flight(&mut scene, &["a"]).await;
    scene.will_hold(1, HoldCause::Quota, HOUR_MS, MINUTE_MS);
    let ordered =
        end(&batch, "a", State::Pending).holding(HoldOn::Account, HoldCause::Quota, HOUR_MS, MINUTE_MS);
    scene.settle(&[ordered.saying(Signal::Throttled)]).await;
}
