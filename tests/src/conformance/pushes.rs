//! push: a key is made once and remembered as long as its record.

use super::bench::Bench;
use super::ends::{Ending, accepted, claimed, end};
use super::scene::{HOUR_MS, Scene, fresh_class, fresh_name};
use crate::store::{job, name};
use paceline_core::State;
use paceline_store::*;

/// A job whose content is this.
fn with(key: &str, document: &[u8]) -> NewJob {
    NewJob { document: document.to_vec(), ..job(key) }
}

/// One job in every state, each under the name of its state.
pub(super) async fn one_everywhere<B: Bench>(scene: &mut Scene<'_, B>) {
    let key = |state: State| job(state.as_str());
    let expired = NewJob { expires_at_ms: 1, ..key(State::Expired) };
    let others = State::ALL.into_iter().filter(|state| ![State::Queued, State::Expired].contains(state));
    scene.push(&[expired]).await;
    scene.push(&others.clone().map(key).collect::<Vec<_>>()).await;
    scene.will_expire(&["expired"]);
    let batch = scene.claim(10).await;
    let ends: Vec<Settlement> = others
        .filter(|state| *state != State::InFlight)
        .map(|state| end(&batch, state.as_str(), state))
        .collect();
    let moved: Vec<Settled> = ends.iter().map(|end| Settled::Moved(end.decision.target)).collect();
    assert_eq!(scene.settle(&ends).await, moved);
    scene.push(&[key(State::Queued)]).await;
}

pub async fn a_key_is_created_once<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    assert_eq!(scene.push(&[job("a"), job("b")]).await, [Pushed::Created, Pushed::Created]);
    assert_eq!(
        scene.push(&[job("a"), with("b", b"other"), job("c")]).await,
        [Pushed::Duplicate(State::Queued), Pushed::Conflict(State::Queued), Pushed::Created]
    );
    assert_eq!(scene.push(&[]).await, []);
}

pub async fn a_key_named_twice_in_one_batch_is_settled_in_order<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    assert_eq!(
        scene.push(&[with("a", b"1"), job("b"), with("a", b"1"), with("a", b"2")]).await,
        [Pushed::Created, Pushed::Created, Pushed::Duplicate(State::Queued), Pushed::Conflict(State::Queued)]
    );
}

pub async fn a_field_that_would_break_a_record_is_named_and_the_others_go_on<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let year_2100 = 4_102_444_800_000;
    let bad = |field: &str| Pushed::Invalid(field.into());
    let words = scene
        .push(&[
            NewJob { at_ms: year_2100 + 1, ..job("a") },
            NewJob { expires_at_ms: year_2100 + 1, ..job("b") },
            NewJob { cost: 0, ..job("c") },
            NewJob { cost: 1_001, ..job("d") },
            NewJob { campaign: "x".repeat(41), ..job("e") },
            NewJob { campaign: "tab\t".into(), ..job("f") },
            NewJob {
                at_ms: year_2100,
                expires_at_ms: year_2100,
                cost: 1_000,
                campaign: "é".repeat(20),
                ..job("g")
            },
            job("ключ 鍵 🔑"),
        ])
        .await;
    assert_eq!(
        words,
        [
            bad("at_ms"),
            bad("expires_at_ms"),
            bad("cost"),
            bad("cost"),
            bad("campaign"),
            bad("campaign"),
            Pushed::Created,
            Pushed::Created
        ]
    );
}

pub async fn a_fingerprint_is_compared_and_not_the_bytes<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let given = |fingerprint: &str, document: &[u8]| NewJob {
        fingerprint: fingerprint.into(),
        document: document.to_vec(),
        ..job("a")
    };
    let sha1_of_abc = "a9993e364706816aba3e25717850c26c9cd0d89d";
    scene.push(&[given("", b"abc")]).await;
    for (again, word) in [
        (given(sha1_of_abc, b"other bytes, same content"), Pushed::Duplicate(State::Queued)),
        (given(&sha1_of_abc[..16], b""), Pushed::Duplicate(State::Queued)),
        (given(&sha1_of_abc[..15], b"abc"), Pushed::Conflict(State::Queued)),
        (given("", b"abd"), Pushed::Conflict(State::Queued)),
    ] {
        assert_eq!(scene.push(&[again]).await, [word]);
    }
}

pub async fn a_push_again_is_answered_with_the_state_it_is_in<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    one_everywhere(&mut scene).await;
    let again: Vec<NewJob> = State::ALL.map(|state| job(state.as_str())).into();
    assert_eq!(scene.push(&again).await, State::ALL.map(Pushed::Duplicate));
    let other: Vec<NewJob> = State::ALL.map(|state| with(state.as_str(), b"other")).into();
    assert_eq!(scene.push(&other).await, State::ALL.map(Pushed::Conflict));
}

pub async fn a_key_is_free_again_after_retention_and_its_birth_is_another<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let before = scene.job("a").birth;
    let batch = scene.claim(1).await;
    scene.settle(&[accepted(&batch, "a", "m1")]).await;
    assert_eq!(scene.sweep(State::Submitted, HOUR_MS, 10).await, 0);
    scene.pass(2).await;
    assert_eq!(scene.sweep(State::Submitted, 1, 10).await, 1);
    assert_eq!(scene.push(&[with("a", b"new life")]).await, [Pushed::Created]);
    assert_ne!(scene.job("a").birth, before);
}

pub async fn one_key_in_two_classes_is_two_jobs<B: Bench>(bench: B) {
    let mut one = Scene::new(&bench).await;
    let sister = ClassRef { class: name(&fresh_name()), ..one.class.clone() };
    let mut sister = Scene::of(&bench, sister).await;
    let mut stranger = Scene::of(&bench, fresh_class()).await;
    for scene in [&mut one, &mut sister, &mut stranger] {
        let document = scene.class.class.to_string();
        assert_eq!(scene.push(&[with("a", document.as_bytes())]).await, [Pushed::Created]);
    }
    let batch = one.claim(10).await;
    one.settle(&[accepted(&batch, "a", "m1")]).await;
    one.look().await;
    sister.look().await;
    stranger.look().await;
}

pub async fn a_large_document_lives_apart_and_leaves_with_the_receipt<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let bytes = |n: usize| -> Vec<u8> { (0..n).map(|i| (i % 256) as u8).collect() };
    let jobs = [with("packed", &bytes(4_096)), with("apart", &bytes(4_097)), with("kept", &bytes(100_000))];
    scene.push(&jobs).await;
    let batch = scene.claim(10).await;
    for new in &jobs {
        let Record::Job(job) = &claimed(&batch, new.key.as_str()).record else { panic!("it can be read") };
        assert_eq!(job.document, new.document);
    }
    let ends = [accepted(&batch, "packed", "m1"), accepted(&batch, "apart", "m2")];
    scene.settle(&ends).await;
    scene.settle(&[end(&batch, "kept", State::Failed)]).await;
    assert_eq!(scene.job("kept").document, bytes(100_000));
    assert_eq!(scene.push(&jobs[1..2]).await, [Pushed::Duplicate(State::Submitted)]);
    scene.replay(0.0, &[("kept", State::Failed)]).await;
    scene.cancel(&["kept"]).await;
    assert_eq!(scene.job("kept").document, b"");
}

pub async fn a_full_class_takes_all_of_a_batch_or_nothing<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, ClassRef { max_waiting: 3, ..fresh_class() }).await;
    scene.push(&[job("a"), job("b")]).await;
    let full = |waiting| Err(StoreError::Full { waiting });
    let push = |keys: [&str; 2]| keys.map(job);
    assert_eq!(bench.store().push(&scene.class, &push(["c", "d"])).await, full(2));
    scene.look().await;
    scene.push(&[job("c")]).await;
    assert_eq!(bench.store().push(&scene.class, &[job("d")]).await, full(3));
    // Pending counts too; what is in flight makes room.
    let batch = scene.claim(2).await;
    scene.settle(&[end(&batch, "a", State::Pending).after(HOUR_MS)]).await;
    assert_eq!(bench.store().push(&scene.class, &push(["d", "e"])).await, full(2));
    assert_eq!(scene.push(&[job("d")]).await, [Pushed::Created]);
}

pub async fn a_class_that_nobody_declared_takes_nothing<B: Bench>(bench: B) {
    let class = fresh_class();
    assert_eq!(bench.store().push(&class, &[job("a")]).await, Err(StoreError::UnknownClass));
    assert_eq!(bench.store().get(&class, "a").await, Ok(None));
    let mut scene = Scene::of(&bench, class).await;
    assert_eq!(scene.push(&[job("a")]).await, [Pushed::Created]);
}
