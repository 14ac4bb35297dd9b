//! Budgets in claim: tokens by rate and burst, and how many may be in flight.

use super::bench::Bench;
use super::ends::{Ending, end, keys};
use super::scene::{HOUR_MS, Scene, fresh_name};
use crate::store::{class_with, job, name, spender};
use paceline_core::State;
use paceline_core::budget::Limits;
use paceline_store::*;

/// Tokens come so slowly that none comes within a test: a burst of 5, of which 4 are in force.
fn slow() -> ClassRef {
    class_with(&fresh_name(), "1/h", 5, 0)
}

/// A second budget behind the credential's.
fn with_account(mut class: ClassRef, rate: &str, burst: u32, max_in_flight: u32) -> ClassRef {
    let account = class_with("account", rate, burst, max_in_flight).budgets.remove(0);
    class.budgets.push(BudgetRef { spenders: vec![spender(class.class.as_str())], ..account });
    class
}

fn wait(claim: &Claim) -> (&str, Option<u64>) {
    match claim {
        Claim::Wait { ms, term } => (term, *ms),
        other => panic!("{other:?}"),
    }
}

/// A wait for `tokens` tokens of one an hour, some of the first of which may have passed.
fn is_about_hours(ms: Option<u64>, tokens: u64) -> bool {
    ms.is_some_and(|ms| ms <= tokens * HOUR_MS && ms > tokens * HOUR_MS - HOUR_MS / 2)
}

pub async fn a_claim_takes_the_burst_and_then_waits_for_the_rate<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, slow()).await;
    scene.push(&["a", "b", "c", "d", "e"].map(job)).await;
    let batch = scene.claim(10).await;
    assert_eq!(keys(&batch), ["a", "b", "c", "d"]);
    assert!(is_about_hours(batch.next_ms, 1), "{:?}", batch.next_ms);
    let claim = scene.claim_nothing().await;
    let (term, ms) = wait(&claim);
    assert!(term == "rate" && is_about_hours(ms, 1), "{claim:?}");
}

pub async fn tokens_come_at_the_rate<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "50/s", 1, 0)).await;
    scene.push(&["a", "b", "c"].map(job)).await;
    let mut claimed_ms = Vec::new();
    while claimed_ms.len() < 3 {
        let ask = scene.ask(10);
        match scene.claim_with(&ask).await {
            Claim::Jobs(batch) => {
                assert_eq!(batch.jobs.len(), 1);
                claimed_ms.push(batch.now_ms);
            }
            claim => {
                let (term, ms) = wait(&claim);
                assert!(term == "rate" && ms.is_some_and(|ms| (1..=20).contains(&ms)), "{claim:?}");
                scene.pass(ms.unwrap_or_default()).await;
            }
        }
    }
    // A ms may be cut off at either end; of the pace nothing is.
    assert!(claimed_ms[2] - claimed_ms[0] >= 39, "{claimed_ms:?}");
}

pub async fn jobs_whose_tokens_come_soon_come_along_each_with_its_offset<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "100/s", 2, 0)).await;
    scene.push(&["a", "b", "c", "d"].map(job)).await;
    let ask = ClaimAsk { lookahead_ms: 20, ..scene.ask(10) };
    let batch = scene.claim_jobs(&ask).await;
    let offsets: Vec<u64> = batch.jobs.iter().map(|job| job.offset_ms).collect();
    assert_eq!((keys(&batch), offsets), (vec!["a", "b", "c"], vec![0, 10, 20]));
    assert_eq!(batch.next_ms, Some(30));
}

/// A worker that takes a job early holds its lease and its slot for nothing.
pub async fn a_job_whose_token_is_to_come_does_not_go_alone<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, class_with(&fresh_name(), "1/min", 1, 0)).await;
    scene.push(&["a", "b"].map(job)).await;
    scene.claim(1).await;
    let ask = ClaimAsk { lookahead_ms: HOUR_MS, ..scene.ask(10) };
    assert!(matches!(wait(&scene.claim_with(&ask).await), ("rate", Some(ms)) if ms <= 60_000));
}

pub async fn the_credential_and_the_account_both_bind<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, with_account(slow(), "1/h", 3, 0)).await;
    scene.push(&["a", "b", "c"].map(job)).await;
    assert_eq!(keys(&scene.claim(10).await), ["a", "b"], "the account has two");
    assert!(matches!(wait(&scene.claim_nothing().await), ("rate", ms) if is_about_hours(ms, 1)));
    // The credential paid for two only: with a wide account it has two more.
    let mut wide = scene.class.clone();
    wide.budgets.truncate(1);
    scene.push(&["d", "e"].map(job)).await;
    let ask = scene.ask(10);
    let Ok(Claim::Jobs(batch)) = bench.store().claim(&wide, &ask).await else {
        panic!("two tokens are left")
    };
    assert_eq!(keys(&batch), ["c", "d"]);
}

pub async fn a_job_dearer_than_the_burst_goes_when_the_bucket_is_full_and_leaves_debt<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, slow()).await;
    scene.push(&[NewJob { cost: 10, ..job("dear") }, job("x")]).await;
    let batch = scene.claim(10).await;
    assert_eq!(keys(&batch), ["dear"]);
    assert!(is_about_hours(batch.next_ms, 7), "six of debt and one for itself: {:?}", batch.next_ms);
    let mut scene = Scene::of(&bench, slow()).await;
    scene.push(&[job("a"), NewJob { cost: 10, ..job("dear") }, job("x")]).await;
    assert_eq!(keys(&scene.claim(10).await), ["a"], "the bucket is not full any more");
    assert!(matches!(wait(&scene.claim_nothing().await), ("rate", ms) if is_about_hours(ms, 1)));
}

pub async fn what_was_not_sent_gives_its_tokens_back<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, with_account(slow(), "1/h", 5, 0)).await;
    scene.push(&[NewJob { cost: 3, ..job("a") }, job("b")]).await;
    let batch = scene.claim(10).await;
    assert_eq!(keys(&batch), ["a", "b"]);
    assert!(matches!(scene.claim_nothing().await, Claim::Empty { next_ms: None }));
    let back = ["a", "b"].map(|key| end(&batch, key, State::Queued).unsent());
    assert_eq!(scene.settle(&back).await, [Settled::Moved(State::Queued); 2]);
    assert_eq!(scene.settle(&back).await, [Settled::Already; 2], "and nothing is given back twice");
    scene.push(&[job("c")]).await;
    assert_eq!(keys(&scene.claim(10).await), ["a", "b"]);
    assert!(matches!(wait(&scene.claim_nothing().await), ("rate", ms) if is_about_hours(ms, 1)));
}

pub async fn in_flight_is_bounded_over_the_unexpired_leases_of_all_spenders<B: Bench>(bench: B) {
    let mut one = with_account(class_with(&fresh_name(), "1000/s", 100, 0), "1000/s", 100, 3);
    let mut two = ClassRef { class: name(&fresh_name()), ..one.clone() };
    let spenders = [&one, &two].map(|class| Spender { share: 0.5, ..spender(class.class.as_str()) }).to_vec();
    one.budgets[1].spenders.clone_from(&spenders);
    two.budgets[1].spenders = spenders;
    let (mut one, mut two) = (Scene::of(&bench, one).await, Scene::of(&bench, two).await);
    let jobs = ["a", "b", "c", "d"].map(job);
    one.push(&jobs).await;
    two.push(&jobs).await;
    assert_eq!(one.claim_and_lapse(10).await.jobs.len(), 3);
    let batch = two.claim(2).await;
    assert_eq!(keys(&batch), ["a", "b"], "lapsed leases do not count");
    assert_eq!(one.claim(10).await.jobs.len(), 1, "two and one are three");
    assert_eq!(wait(&one.claim_nothing().await), ("max_in_flight", None));
    assert_eq!(wait(&two.claim_nothing().await), ("max_in_flight", None));
    two.settle(&[end(&batch, "a", State::Failed)]).await;
    assert_eq!(keys(&two.claim(10).await), ["c"]);
    assert_eq!(wait(&one.claim_nothing().await), ("max_in_flight", None));
}

pub async fn budgets_of_one_name_in_two_groups_never_meet<B: Bench>(bench: B) {
    for _ in 0..3 {
        let group = fresh_name();
        let mut class = with_account(class_with(&group, "1000/s", 100, 0), "1/h", 2, 0);
        class.budgets.remove(0);
        let mut scene = Scene::of(&bench, class).await;
        scene.push(&["a", "b"].map(job)).await;
        assert_eq!(keys(&scene.claim(10).await), ["a"]);
    }
}

pub async fn a_new_declaration_changes_limits_and_nothing_else<B: Bench>(bench: B) {
    let mut scene = Scene::of(&bench, slow()).await;
    scene.push(&["a", "b", "c", "d", "e", "f"].map(job)).await;
    scene.claim(10).await;
    scene.hold_budget(0, Some(paceline_core::decide::HoldCause::Pause), None, "ada").await;
    scene.class.budgets[0].limits = Limits::fixed("1/s".parse().unwrap(), 100, 0);
    bench.store().declare(&scene.class).await.unwrap();
    scene.look().await;
    scene.hold_budget(0, None, None, "ada").await;
    let claim = scene.claim_nothing().await;
    assert!(
        matches!(wait(&claim), ("rate", Some(1..=1_000))),
        "faster, and without a fresh burst: {claim:?}"
    );
}
