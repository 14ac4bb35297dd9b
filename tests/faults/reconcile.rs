//! Data that was damaged behind Paceline's back: the reconciler finds it, puts it right once, and loses nothing.

use crate::support::{open_door, slow};
use paceline_core::State;
use paceline_store::{Record, Step, Walk};
use paceline_tests::binary;
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::process::Command;

const PREFIX: &str = "t:{bulk}:bulk";

fn raw(stage: &Stage, words: &[&str]) -> redis::Value {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query(&mut stage.redis.connection()).expect("redis takes it")
}

async fn walked(stage: &Stage, mends: bool) -> Step {
    let (mut next, mut whole) = (Some(Walk::START), Step::default());
    while let Some(walk) = next {
        let step = stage.store.reconcile_step(&stage.class("bulk"), &walk, mends).await.expect("redis runs");
        whole.examined += step.examined;
        whole.wrong.extend(step.wrong);
        next = step.next;
    }
    whole.wrong.sort();
    whole
}

/// Four kinds of damage among thirty jobs.
async fn damaged() -> Stage {
    let stage = Stage::new(open_door(), ONE_CLASS).await;
    stage.push("bulk", 30).await;
    raw(&stage, &["ZREM", &format!("{PREFIX}:queued"), "bulk:1"]);
    raw(&stage, &["DEL", &format!("{PREFIX}:job:bulk:2")]);
    raw(&stage, &["ZADD", &format!("{PREFIX}:deferred"), "1", "bulk:3"]);
    raw(&stage, &["ZADD", &format!("{PREFIX}:submitted"), "1", "never:was"]);
    stage
}

fn expected() -> Vec<(String, Vec<State>, Option<State>)> {
    vec![
        ("bulk:1".into(), vec![], Some(State::Queued)),
        ("bulk:2".into(), vec![State::Queued], Some(State::Deferred)),
        ("bulk:3".into(), vec![State::Queued, State::Deferred], Some(State::Queued)),
        ("never:was".into(), vec![State::Submitted], None),
    ]
}

#[tokio::test]
async fn what_was_damaged_is_found_put_right_once_and_sent() {
    let stage = damaged().await;
    assert_eq!(walked(&stage, false).await.wrong, expected(), "looking changes nothing");
    assert_eq!(walked(&stage, true).await.wrong, expected());
    assert_eq!(walked(&stage, true).await.wrong, [], "and then all agree");
    let worker = stage.worker();
    let depths = stage.await_drained("bulk").await;
    worker.stopped().await;
    assert_eq!((depths.of(State::Submitted), depths.of(State::Deferred)), (29, 1), "{depths:?}");
    assert_eq!(stage.job("bulk", "bulk:2").await.record, Record::Missing, "a person sees that it is gone");
    assert_eq!(stage.ledger().summary.duplicates, 0);
}

/// While a worker claims and settles all the time, a walk meets jobs in every state and none that is wrong.
#[tokio::test]
async fn a_walk_through_jobs_that_move_finds_nothing() {
    let stage = Stage::new(slow(5), ONE_CLASS).await;
    stage.push("bulk", 1_500).await;
    let worker = stage.worker();
    let mut examined = 0;
    while stage.depths("bulk").await.waiting() > 0 {
        let step = walked(&stage, true).await;
        assert_eq!(step.wrong, []);
        examined += step.examined;
    }
    stage.await_drained("bulk").await;
    worker.stopped().await;
    assert!(examined >= 1_500, "{examined}");
}

#[tokio::test]
async fn the_command_tells_and_mends() {
    let stage = damaged().await;
    let run = |args: &[&str]| {
        let output = Command::new(binary::paceline())
            .arg("reconcile")
            .args(args)
            .args(["--json", "--redis", &stage.redis.url(), "--config"])
            .arg(stage.settings_file())
            .output()
            .expect("the binary is built");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        (output.status.code(), report["wrong"].as_array().map(Vec::len))
    };
    assert_eq!(run(&["--dry-run"]), (Some(3), Some(4)));
    assert_eq!(run(&[]), (Some(0), Some(4)));
    assert_eq!(run(&["--dry-run"]), (Some(0), Some(0)));
}
