//! claim: due jobs into in flight, oldest first.

use super::bench::Bench;
use super::ends::{Ending, accepted, claimed, end, keys};
use super::scene::{HOUR_MS, Scene, fresh_class};
use crate::store::{class_with, job};
use paceline_core::State;
use paceline_store::*;

pub async fn the_oldest_due_job_of_both_sets_goes_first<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    give_credit(&mut scene).await;
    scene.push(&[job("tried")]).await;
    let batch = scene.claim(1).await;
    scene.push(&[job("b")]).await;
    scene.pass(2).await;
    scene.settle(&[end(&batch, "tried", State::Pending)]).await;
    scene.pass(2).await;
    scene.push(&[job("c"), job("d")]).await;
    let batch = scene.claim(3).await;
    assert_eq!(keys(&batch), ["b", "tried", "c"]);
    let batch = scene.claim(3).await;
    assert_eq!(keys(&batch), ["d"]);
}

/// Four first attempts earn the credit of one retry.
async fn give_credit<B: Bench>(scene: &mut Scene<'_, B>) {
    scene.push(&["c1", "c2", "c3", "c4"].map(job)).await;
    scene.claim(4).await;
}

/// A store of retries never keeps new jobs waiting: without credit they go only when no first attempt is due.
pub async fn a_retry_costs_what_four_first_attempts_earn<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["r1", "r2", "r3"].map(job)).await;
    let batch = scene.claim(3).await;
    scene.settle(&["r1", "r2", "r3"].map(|key| end(&batch, key, State::Pending))).await;
    scene.pass(2).await;
    scene.push(&["n1", "n2", "n3", "n4", "n5", "n6"].map(job)).await;
    assert_eq!(keys(&scene.claim(3).await), ["n1", "r1", "n2"], "three first attempts and this one");
    assert_eq!(keys(&scene.claim(9).await), ["n3", "n4", "n5", "r2", "n6", "r3"], "then whatever is due");
    let mut idle = Scene::new(&bench).await;
    idle.push(&[job("only")]).await;
    let batch = idle.claim(1).await;
    idle.settle(&[end(&batch, "only", State::Pending)]).await;
    idle.pass(2).await;
    assert_eq!(keys(&idle.claim(1).await), ["only"], "a retry alone needs no credit");
}

/// failures 47: no lease can lapse on a job that is not due.
pub async fn a_scheduled_job_is_not_claimed_before_it_is_due<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let later_ms = scene.now_ms() + HOUR_MS;
    scene.push(&[NewJob { at_ms: later_ms, ..job("later") }]).await;
    let Claim::Empty { next_ms: Some(next_ms) } = scene.claim_nothing().await else { panic!("a time") };
    assert!(next_ms <= HOUR_MS && scene.now_ms() + next_ms >= later_ms, "{next_ms}");
    let soon_ms = scene.now_ms() + 30;
    scene.push(&[NewJob { at_ms: soon_ms, ..job("soon") }]).await;
    let batch = loop {
        let ask = scene.ask(10);
        match scene.claim_with(&ask).await {
            Claim::Jobs(batch) => break batch,
            Claim::Empty { next_ms } => scene.pass(next_ms.expect("it is the next")).await,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(keys(&batch), ["soon"]);
    assert!(batch.now_ms >= soon_ms);
    assert!(batch.next_ms.is_some_and(|next_ms| next_ms > HOUR_MS / 2), "{:?}", batch.next_ms);
}

pub async fn nothing_at_all_has_no_next_time<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    assert_eq!(scene.claim_nothing().await, Claim::Empty { next_ms: None });
    scene.push(&[job("a")]).await;
    assert_eq!(scene.claim(1).await.next_ms, Some(0), "there may be more");
    assert_eq!(scene.claim_nothing().await, Claim::Empty { next_ms: None });
}

pub async fn a_repeat_gives_the_same_jobs_and_takes_no_more_tokens<B: Bench>(bench: B) {
    let class = class_with(fresh_class().class.as_str(), "1/h", 4, 0);
    let mut scene = Scene::of(&bench, class).await;
    scene.push(&["a", "b", "c", "d"].map(job)).await;
    let ask = scene.ask(2);
    let batch = scene.claim_jobs(&ask).await;
    assert_eq!(keys(&batch), ["a", "b"]);
    for _ in 0..3 {
        let again = scene.claim_jobs(&ask).await;
        assert_eq!((again.jobs, again.deadline_ms), (batch.jobs.clone(), batch.deadline_ms));
    }
    let other = scene.claim(2).await;
    assert_eq!(keys(&other), ["c"], "the third and last token");
    let Claim::Wait { ms, term } = scene.claim_nothing().await else { panic!("no token is left") };
    assert!(term == "rate" && ms.is_some_and(|ms| ms <= HOUR_MS && ms > HOUR_MS / 2), "{ms:?}");
}

pub async fn a_repeat_gives_only_what_still_stands<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["a", "b"].map(job)).await;
    let ask = scene.ask(2);
    let batch = scene.claim_jobs(&ask).await;
    scene.settle(&[accepted(&batch, "a", "m1")]).await;
    assert_eq!(keys(&scene.claim_jobs(&ask).await), ["b"]);
    // Two workers do not know each other's nonces.
    let other = ClaimAsk { worker: "x".into(), ..ask.clone() };
    assert_eq!(scene.claim_with(&other).await, Claim::Empty { next_ms: None });
    scene.settle(&[end(&batch, "b", State::Pending)]).await;
    let other = ClaimAsk { worker: "x".into(), ..scene.ask(1) };
    assert_eq!(keys(&scene.claim_jobs(&other).await), ["b"]);
    assert_eq!(keys(&scene.claim_jobs(&ask).await), [""; 0], "it is another's now");
    scene.claim_nothing().await;
    assert_eq!(keys(&scene.claim_jobs(&ask).await), [""; 0], "a claim that got nothing is not remembered");
}

/// A repeat of a settle is known by the token of its lease, so no later lease may have the same.
pub async fn a_lease_never_has_the_token_of_one_that_was_settled<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let mut last_ms = 0;
    // The second lease is shorter than what is left of the first, the third as long as the second.
    for lease_ms in [HOUR_MS, 1, 1] {
        let ask = ClaimAsk { lease_ms, ..scene.ask(1) };
        let batch = scene.claim_jobs(&ask).await;
        assert_eq!(batch.deadline_ms, (batch.now_ms + lease_ms).max(last_ms + 1));
        last_ms = batch.deadline_ms;
        let again = end(&batch, "a", State::Pending);
        assert_eq!(scene.settle(&[again]).await, [Settled::Moved(State::Pending)]);
    }
}

pub async fn an_expired_job_moves_without_token_or_slot<B: Bench>(bench: B) {
    let class = class_with(fresh_class().class.as_str(), "1/h", 2, 2);
    let mut scene = Scene::of(&bench, class).await;
    let expired = |key: &str| NewJob { expires_at_ms: 1, ..job(key) };
    scene.push(&[expired("1"), job("a")]).await;
    scene.will_expire(&["1"]);
    assert_eq!(keys(&scene.claim(10).await), ["a"], "one token, and it is for the one that lives");
    scene.push(&[expired("2"), expired("3"), job("b")]).await;
    for one_slot_looks_at_one_head in ["2", "3"] {
        scene.will_expire(&[one_slot_looks_at_one_head]);
        assert_eq!(scene.claim_nothing().await, Claim::Empty { next_ms: Some(0) });
    }
    assert!(matches!(scene.claim_nothing().await, Claim::Wait { term, .. } if term == "rate"));
}

pub async fn an_expired_job_leaves_a_receipt_or_all_of_it_where_it_may_have_been_accepted<B: Bench>(
    bench: B,
) {
    let mut scene = Scene::new(&bench).await;
    let expires_at_ms = scene.now_ms() + HOUR_MS;
    scene
        .push(&["a", "b"].map(|key| NewJob { expires_at_ms, document: vec![b'x'; 5_000], ..job(key) }))
        .await;
    let batch = scene.claim(2).await;
    scene.settle(&[end(&batch, "a", State::Pending).ambiguous(), end(&batch, "b", State::Pending)]).await;
    let batch = scene.claim(2).await;
    scene.settle(&["a", "b"].map(|key| end(&batch, key, State::Pending))).await;
    scene.expire("a").await;
    scene.expire("b").await;
    scene.will_expire(&["a", "b"]);
    assert_eq!(scene.claim_nothing().await, Claim::Empty { next_ms: Some(0) });
    assert_eq!((scene.place("a").0, scene.place("b").0), (State::Unconfirmed, State::Expired));
    let kept = ["a", "b"].map(|key| scene.job(key).history.attempts().len());
    assert_eq!((kept, scene.job("b").counters.attempts), ([2, 1], 2), "of all attempts their number is kept");
}

/// A poison job parks itself and not its neighbours.
pub async fn a_job_that_lost_two_workers_comes_alone<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    give_credit(&mut scene).await;
    scene.push(&[job("poison")]).await;
    let batch = scene.claim(1).await;
    scene.push(&[job("a")]).await;
    scene.pass(2).await;
    let mut lapsed = end(&batch, "poison", State::Pending);
    lapsed.decision.counters.lapses = 2;
    scene.settle(&[lapsed]).await;
    scene.pass(2).await;
    scene.push(&[job("b")]).await;
    for alone in ["a", "poison", "b"] {
        assert_eq!(keys(&scene.claim(10).await), [alone]);
    }
}

pub async fn limits_that_are_lost_are_asked_for<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a")]).await;
    let ask = scene.ask(1);
    let mut class = scene.class.clone();
    class.budgets.push(fresh_class().budgets.remove(0));
    assert_eq!(bench.store().claim(&class, &ask).await, Err(StoreError::Undeclared));
    scene.look().await;
    bench.store().declare(&class).await.unwrap();
    assert!(matches!(bench.store().claim(&class, &ask).await, Ok(Claim::Jobs(_))));
}

/// Six bytes of ms, doubles in Lua and in scores: nothing is rounded on the way.
pub async fn large_numbers_keep_exact<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let late_ms = 4_102_444_799_999;
    let far = NewJob { at_ms: late_ms, expires_at_ms: late_ms - 1, cost: 999, ..job("far") };
    scene.push(&[far, job("a")]).await;
    assert_eq!(scene.place("far"), (State::Queued, late_ms));
    let ask = ClaimAsk { lease_ms: 2_000_000_000_001, ..scene.ask(1) };
    let batch = scene.claim_jobs(&ask).await;
    assert_eq!(batch.deadline_ms, batch.now_ms + 2_000_000_000_001);
    let mut again = end(&batch, "a", State::Pending).after(2_592_000_001);
    again.decision.counters = paceline_core::job::Counters {
        spent: 255,
        throttles: 65_535,
        lapses: 254,
        run: 253,
        attempts: 65_534,
    };
    assert_eq!(scene.settle(&[again.clone()]).await, [Settled::Moved(State::Pending)]);
    assert_eq!(scene.settle(&[again]).await, [Settled::Already]);
    assert_eq!(claimed(&batch, "a").offset_ms, 0);
}
