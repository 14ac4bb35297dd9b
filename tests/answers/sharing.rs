//! Two classes on one key: bulk never delays a password reset, and a flood of those never starves bulk.

use crate::support::*;
use paceline_core::State;
use paceline_core::decide::HoldCause;
use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::ErrorAnswer;
use paceline_store::Store;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::time::Duration;

fn two_classes(rate: &str) -> String {
    let one =
        ONE_CLASS.replace("rate = \"10000/s\"\nburst = 1000", &format!("rate = \"{rate}\"\nburst = 20"));
    one.replace("[class.bulk]\n", "[class.bulk]\ngroup = \"account\"\n")
        + "[class.transactional]\ngroup = \"account\"\ncredential = \"bulk-key\"\npath = \"/v1/send\"\ndeadline_ms = 2000\n"
}

async fn push_one(stage: &Stage, index: usize) {
    let job = paceline_tests::store::job(&format!("reset:{index}"));
    stage.store.push(&stage.class("transactional"), &[job]).await.expect("redis runs");
}

/// failures 79: what is due one by one goes at once, however deep bulk is.
#[tokio::test]
async fn bulk_delays_no_password_reset() {
    let stage = Stage::new(wide(), &two_classes("100/s")).await;
    stage.push("bulk", 600).await;
    let worker = stage.worker();
    stage.await_count("bulk", State::Submitted, 50).await;
    for index in 0..30 {
        push_one(&stage, index).await;
        stage.await_count("transactional", State::Submitted, index as u64 + 1).await;
    }
    let left = stage.depths("bulk").await.waiting();
    assert!(left > 200, "thirty resets went, one after the other, while bulk waited: {left}");
    worker.stopped().await;
}

/// failures 79: above capacity the class that is shed first still has its share.
#[tokio::test]
async fn a_flood_of_the_urgent_class_starves_no_other() {
    let stage = Stage::new(wide(), &two_classes("100/s")).await;
    stage.push("bulk", 300).await;
    stage.push("transactional", 600).await;
    let worker = stage.worker();
    stage.await_count("transactional", State::Submitted, 300).await;
    let bulk = stage.depths("bulk").await.of(State::Submitted);
    // Of 70 shares bulk has 20.
    assert!((40..=180).contains(&bulk), "{bulk} of bulk beside 300 of the urgent class");
    worker.stopped().await;
}

/// failures 19: an allowance that is used up holds the key until its turnover and leaves the pace alone.
#[tokio::test]
async fn a_spent_allowance_holds_the_key_and_leaves_the_pace_alone() {
    let settings = ONE_CLASS.replace("start = \"ceiling\"\nadapts = false", "start = \"ceiling\"");
    let spent = ErrorAnswer { retry_after: Some("2".into()), ..ErrorAnswer::new(402) };
    let stage = Stage::new(Scenario { always: Some(spent), ..wide() }, &settings).await;
    stage.push("bulk", 30).await;
    let worker = stage.worker();
    let class = stage.class("bulk");
    let held = async || stage.depths("bulk").await.holds[1].as_ref().map(|hold| hold.cause);
    while held().await != Some(HoldCause::Quota) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.sandbox.set_scenario(wide()).expect("a good scenario");
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 30, "{depths:?}");
    assert_none_spent(&stage).await;
    let budget = stage.store.pace(&class, &class.budgets[0]).await.expect("redis runs");
    assert_eq!((budget.pace_per_s, budget.heard.throttled, budget.heard.episodes), (10_000.0, 0, 0));
    worker.stopped().await;
}

async fn assert_none_spent(stage: &Stage) {
    for index in 0..30 {
        let stored = stage.job("bulk", &format!("bulk:{index}")).await;
        let paceline_store::Record::Job(job) = stored.record else { panic!("it can be read") };
        assert_eq!(job.counters.spent, 0, "{index}");
    }
}

/// Outside its send window a class is held and everybody sees why; a person who lifts that sends.
#[tokio::test]
async fn a_class_outside_its_window_waits_until_a_person_opens_it() {
    let settings = ONE_CLASS.replace("[class.bulk]\n", "[class.bulk]\nwindows = [\"2020-01-01\"]\n");
    let stage = Stage::new(wide(), &settings).await;
    let worker = stage.worker();
    stage.push("bulk", 5).await;
    let class = stage.class("bulk");
    let held = async || stage.depths("bulk").await.holds[0].as_ref().map(|hold| hold.cause);
    while held().await != Some(HoldCause::Window) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(stage.ledger().summary.requests, 0);
    stage.store.hold(&class, paceline_store::Held::Class, None, None, "ada").await.expect("redis runs");
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 5, "{depths:?}");
    worker.stopped().await;
}
