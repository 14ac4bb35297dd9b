//! Settings that change under a running worker: by file, by signal, by a secret; and those that must not.

use crate::support::*;
use nix::sys::signal::Signal;
use paceline_core::State;
use paceline_store::Store;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::fs;

/// A worker's settings file with another text in it.
fn rewrite(stage: &Stage, change: impl Fn(String) -> String) {
    let file = stage.settings_file();
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(file, change(text)).expect("it can be written");
}

async fn ceiling_per_s(stage: &Stage) -> f64 {
    let class = stage.class(BULK);
    stage.store.pace(&class, &class.budgets[0]).await.expect("redis runs").ceiling_per_s
}

/// Jobs in flight at the change are finished by the worker that has them; nothing waits, lapses or doubles.
#[tokio::test]
async fn a_changed_file_is_followed_under_load_and_nothing_is_lost_or_doubled() {
    let settings = ONE_CLASS.replace("rate = \"10000/s\"\nburst = 1000", "rate = \"100/s\"\nburst = 10");
    let stage = Stage::over(durable_redis(), slow(200), &settings).await;
    stage.push(BULK, 400).await;
    let worker = stage.process();
    await_requests(&stage, 60).await;
    rewrite(&stage, |text| text.replace("100/s", "1000/s"));
    until("the new ceiling is in force", async || ceiling_per_s(&stage).await == 1_000.0).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 400, "{depths:?}");
    assert!(jobs_in(&stage, State::Submitted).await.iter().all(|job| job.counters.lapses == 0));
    assert_delivered_once(&stage, 400);
    assert_eq!(stage.ledger().summary.requests, 400, "nothing was sent twice");
    drop(worker);
}

#[tokio::test]
async fn settings_with_a_fault_are_not_used_and_a_good_signal_is() {
    let stage = Stage::over(durable_redis(), open_door(), ONE_CLASS).await;
    let worker = stage.process();
    stage.push(BULK, 5).await;
    stage.await_drained(BULK).await;
    rewrite(&stage, |text| text.replace("concurrency", "concurency").replace("10000/s", "ten a second"));
    worker.signal(Signal::SIGHUP);
    push_until_taken(&stage, &stage.store, 5..10).await;
    stage.await_count(BULK, State::Submitted, 10).await;
    assert_eq!(ceiling_per_s(&stage).await, 10_000.0, "the old settings stay");
    rewrite(&stage, |text| text.replace("ten a second", "500/s"));
    worker.signal(Signal::SIGHUP);
    until("the good ones are in force", async || ceiling_per_s(&stage).await == 500.0).await;
    push_until_taken(&stage, &stage.store, 10..20).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    drop(worker);
}

/// A key is rotated by writing its file: the next requests carry it, and no job is refused.
#[tokio::test]
async fn a_secret_is_rotated_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let secret = folder.path().join("key");
    fs::write(&secret, "old-key").expect("it can be written");
    let settings = ONE_CLASS.replace(
        "[credential.bulk-key]\n",
        &format!("[credential.bulk-key]\nauth = \"bearer\"\nsecret = \"file:{}\"\n", secret.display()),
    );
    let stage = Stage::over(durable_redis(), open_door(), &settings).await;
    let worker = stage.process();
    stage.push(BULK, 5).await;
    stage.await_drained(BULK).await;
    fs::write(&secret, "the-new-key").expect("it can be written");
    let mut next = 5;
    until("the new key is used", async || {
        push_until_taken(&stage, &stage.store, next..next + 1).await;
        next += 1;
        stage.await_drained(BULK).await;
        stage.ledger().entries.iter().any(|entry| entry.credential.contains("the-new-key"))
    })
    .await;
    let depths = stage.depths(BULK).await;
    assert_eq!(depths.of(State::Submitted), next as u64, "{depths:?}");
    drop(worker);
}
