//! What changes a pace and what shares it: limits by hand, the law's compare-and-set, reserves and the shed order,
//! what is counted for the law, and the answer to "why not now?".

use super::bench::Bench;
use super::ends::{Ending, accepted, end, keys};
use super::scene::{HOUR_MS, Scene, fresh_name};
use crate::store::{class_with, job, name, spender};
use paceline_core::State;
use paceline_core::budget::Limits;
use paceline_core::decide::{HoldCause, HoldOn, Signal};
use paceline_store::*;

/// Two classes that spend from one budget: the first is shed last and has a quarter of it.
fn sharers(rate: &str, burst: u32) -> [ClassRef; 2] {
    let mut first = class_with(&fresh_name(), rate, burst, 0);
    let mut last = ClassRef { class: name(&fresh_name()), ..first.clone() };
    let spenders = vec![
        Spender { share: 0.25, shed_order: 10, ..spender(first.class.as_str()) },
        Spender { share: 0.75, shed_order: 30, ..spender(last.class.as_str()) },
    ];
    first.budgets[0].spenders.clone_from(&spenders);
    last.budgets[0].spenders = spenders;
    [first, last]
}

fn jobs<const N: usize>() -> [NewJob; N] {
    std::array::from_fn(|index| job(&format!("{index:02}")))
}

fn term(claim: &Claim) -> &str {
    match claim {
        Claim::Wait { term, .. } => term,
        other => panic!("{other:?}"),
    }
}

async fn budget<B: Bench>(scene: &Scene<'_, B>) -> BudgetState {
    scene.bench.store().pace(&scene.class, &scene.class.budgets[0]).await.expect("a budget is read")
}

fn adjustment(version: u64, rate_per_s: f64) -> Adjustment {
    Adjustment {
        version,
        rate_per_s,
        burst: 9.0,
        law: "{\"seen\":1}".into(),
        cause: Some("cut".into()),
        is_cut: true,
    }
}

pub async fn what_one_class_reserves_another_does_not_take<B: Bench>(bench: B) {
    let [first, last] = sharers("1/h", 20);
    let (mut first, mut last) = (Scene::of(&bench, first).await, Scene::of(&bench, last).await);
    first.push(&jobs::<9>()).await;
    last.push(&jobs::<20>()).await;
    assert_eq!(last.claim(20).await.jobs.len(), 16, "18 in force, 2 of them the other's");
    assert_eq!(term(&last.claim_nothing().await), "rate");
    assert_eq!(first.claim(9).await.jobs.len(), 2, "the reserve is there at once");
}

pub async fn whoever_is_shed_later_gets_what_overflows<B: Bench>(bench: B) {
    let [first, last] = sharers("20/s", 20);
    let (mut first, mut last) = (Scene::of(&bench, first).await, Scene::of(&bench, last).await);
    first.push(&jobs::<90>()).await;
    last.push(&jobs::<90>()).await;
    first.claim(50).await;
    first.claim_nothing().await;
    assert_eq!(last.claim(50).await.jobs.len(), 2, "its reserve, and nothing of what the other waits for");
    // Its own share and the whole come equally fast here: either binds.
    assert!(["shed", "rate"].contains(&term(&last.claim_nothing().await)));
}

pub async fn a_burst_of_one_is_shared_by_turns<B: Bench>(bench: B) {
    let [first, last] = sharers("15/s", 1);
    let (mut first, mut last) = (Scene::of(&bench, first).await, Scene::of(&bench, last).await);
    first.push(&jobs::<40>()).await;
    last.push(&jobs::<40>()).await;
    let mut sent = [0, 0];
    while sent.iter().sum::<usize>() < 16 {
        for (index, scene) in [&mut first, &mut last].into_iter().enumerate() {
            let ask = ClaimAsk { lookahead_ms: 0, ..scene.ask(1) };
            if let Claim::Jobs(batch) = scene.claim_with(&ask).await {
                sent[index] += batch.jobs.len();
            }
        }
        first.pass(5).await;
    }
    assert!(sent[0] >= 3 && sent[1] >= 9, "a quarter and three quarters: {sent:?}");
}

pub async fn limits_by_hand_stand_against_the_configuration<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "1/h", 5, 0)).await;
    scene.push(&jobs::<9>()).await;
    scene.claim(9).await;
    let by_hand = Limits::fixed("1/s".parse().unwrap(), 50, 0);
    bench.store().limit(&scene.class, &scene.class.budgets[0], &by_hand, Some("ada")).await.unwrap();
    bench.store().declare(&scene.class).await.unwrap();
    let state = budget(&scene).await;
    assert_eq!((state.ceiling_per_s, state.pace_per_s, state.limits_by.as_str()), (1.0, 1.0, "ada"));
    assert!(state.tokens < 1.0, "no fresh burst: {state:?}");
    let ours = scene.class.budgets[0].limits.clone();
    bench.store().limit(&scene.class, &scene.class.budgets[0], &ours, None).await.unwrap();
    let state = budget(&scene).await;
    assert!(state.limits_by.is_empty() && state.pace_per_s < 0.001, "{state:?}");
}

pub async fn a_pace_is_adjusted_by_whoever_read_it_last<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "10/s", 10, 0)).await;
    scene.push(&jobs::<20>()).await;
    scene.claim(20).await;
    let read = budget(&scene).await;
    let (store, at) = (bench.store(), scene.class.budgets[0].clone());
    assert!(store.adjust(&scene.class, &at, &adjustment(read.version, 5.0)).await.unwrap());
    assert!(!store.adjust(&scene.class, &at, &adjustment(read.version, 2.0)).await.unwrap(), "stale");
    let state = budget(&scene).await;
    assert_eq!((state.pace_per_s, state.pace_burst, state.law.as_str()), (5.0, 9.0, "{\"seen\":1}"));
    assert!(state.tokens < 1.0, "a cut grants nothing: {state:?}");
    assert!(store.adjust(&scene.class, &at, &adjustment(state.version, 10.0)).await.unwrap());
    assert!(budget(&scene).await.tokens < 1.0, "nor does a raise");
}

pub async fn the_law_hears_what_was_accepted_and_throttled_since_the_last_cut<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "100/s", 100, 0)).await;
    scene.push(&jobs::<9>()).await;
    let batch = scene.claim(9).await;
    let throttled = |key: &str| end(&batch, key, State::Pending).saying(Signal::Throttled).after(HOUR_MS);
    let before = throttled("01").claimed_at(batch.now_ms - 1);
    scene.settle(&[accepted(&batch, "00", "m"), before]).await;
    scene.will_hold(1, HoldCause::RetryAfter, HOUR_MS, 0);
    let held = |key: &str| throttled(key).holding(HoldOn::Credential, HoldCause::RetryAfter, HOUR_MS, 0);
    scene.settle(&[held("02"), held("03"), held("04")]).await;
    let state = budget(&scene).await;
    let heard = state.heard;
    assert_eq!((heard.taken, heard.accepted, heard.episodes), (9, 1, 1), "one episode: {heard:?}");
    assert_eq!(heard.throttled + state.late_throttled, 4, "{state:?}");
    assert_eq!(state.hold.map(|hold| hold.cause), Some(HoldCause::RetryAfter));
}

pub async fn a_throttled_recipient_delays_its_job_only_until_there_are_many<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&jobs::<5>()).await;
    let batch = scene.claim(5).await;
    let full = |key: &str| {
        end(&batch, key, State::Pending).saying(Signal::RecipientThrottled).after(HOUR_MS).holding(
            HoldOn::Credential,
            HoldCause::RetryAfter,
            HOUR_MS,
            0,
        )
    };
    scene.settle(&[full("00"), full("01"), full("02")]).await;
    assert_eq!(budget(&scene).await.heard.throttled, 0);
    scene.will_hold(1, HoldCause::RetryAfter, HOUR_MS, 0);
    scene.settle(&[full("03")]).await;
    let state = budget(&scene).await;
    assert_eq!(state.heard.throttled + state.late_throttled, 1, "the fourth is about the credential");
}

pub async fn one_probe_is_out_at_a_time<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&jobs::<4>()).await;
    let batch = scene.claim(1).await;
    scene.will_hold(1, HoldCause::Outage, 5, 5);
    scene
        .settle(&[end(&batch, "00", State::Pending).holding(HoldOn::Credential, HoldCause::Outage, 5, 5)])
        .await;
    scene.pass(6).await;
    scene.will_hold(1, HoldCause::Outage, 5, 5);
    let probe = scene.claim(9).await;
    assert_eq!(probe.jobs.len(), 1);
    scene.pass(6).await;
    assert_eq!(term(&scene.claim_nothing().await), "hold:outage", "the first has not come back");
    scene.settle(&[end(&probe, keys(&probe)[0], State::Pending)]).await;
    scene.will_hold(1, HoldCause::Outage, 5, 5);
    assert_eq!(scene.claim(9).await.jobs.len(), 1);
}

pub async fn a_window_holds_the_class_and_a_person_opens_it<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let store = bench.store();
    store.window(&scene.class, HOUR_MS).await.unwrap();
    scene.will_hold(0, HoldCause::Window, HOUR_MS, 0);
    scene.look().await;
    assert_eq!(term(&scene.claim_nothing().await), "hold:window");
    scene.hold(None, None, "ada").await;
    store.window(&scene.class, HOUR_MS).await.unwrap();
    assert_eq!(keys(&scene.claim(1).await), ["a"], "opened by hand, it stays open");
}

pub async fn an_expired_job_leaves_while_its_class_is_held<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let soon_ms = scene.now_ms() + 5;
    scene.push(&[NewJob { expires_at_ms: soon_ms, ..job("a") }, job("b")]).await;
    scene.hold(Some(HoldCause::Pause), None, "ada").await;
    scene.pass(6).await;
    scene.will_expire(&["a"]);
    assert_eq!(scene.claim_nothing().await, Claim::Empty { next_ms: Some(0) });
    assert_eq!(term(&scene.claim_nothing().await), "hold:pause");
    assert_eq!((scene.place("a").0, scene.place("b").0), (State::Expired, State::Queued));
}

pub async fn explained_is_what_claim_would_say<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "1/h", 3, 0)).await;
    scene.push(&["a", "b", "c", "d"].map(job)).await;
    let why = async |scene: &Scene<'_, B>, key: Option<&str>| {
        bench.store().explain(&scene.class, key).await.unwrap()
    };
    let free = why(&scene, None).await.expect("a class is always there");
    assert_eq!((free.term.as_str(), free.wait_ms, free.next_due_ms), ("", Some(0), Some(0)));
    scene.claim(9).await;
    let paced = why(&scene, Some("d")).await.expect("it is there");
    assert_eq!((paced.term.as_str(), paced.state, paced.rank), ("rate", Some(State::Queued), Some(1)));
    let Claim::Wait { ms: Some(ms), .. } = scene.claim_nothing().await else { panic!("a wait") };
    assert!(paced.wait_ms.is_some_and(|other| other.abs_diff(ms) < 2_000), "{paced:?} {ms}");
    scene.hold(Some(HoldCause::Pause), None, "ada").await;
    let held = why(&scene, Some("d")).await.expect("it is there");
    assert_eq!((held.term.as_str(), held.wait_ms), ("hold:pause", None));
    assert_eq!(why(&scene, Some("x")).await, None);
}

/// failures 71: no window of that length ever holds more, wherever it begins.
pub async fn a_quota_binds_in_any_window_of_its_length<B: Bench>(bench: B) {
    let mut class = class_with(&fresh_name(), "1000/s", 100, 0);
    class.budgets[0].limits.quotas = vec!["3/h".parse().unwrap()];
    let mut scene = Scene::of(&bench, class).await;
    scene.push(&jobs::<5>()).await;
    let batch = scene.claim(5).await;
    assert_eq!(batch.jobs.len(), 3);
    let claim = scene.claim_nothing().await;
    let Claim::Wait { ms: Some(ms), term } = &claim else { panic!("{claim:?}") };
    assert!(term == "quota" && (HOUR_MS..=HOUR_MS + 2 * HOUR_MS / 60).contains(ms), "{claim:?}");
    assert_eq!(budget(&scene).await.quotas_used, [3]);
    scene.settle(&[end(&batch, "00", State::Queued).unsent()]).await;
    assert_eq!(scene.claim(5).await.jobs.len(), 1, "what was not sent is not used");
}
