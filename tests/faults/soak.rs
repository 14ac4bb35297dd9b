//! Everything at once, at random moments from a seed: workers killed and suspended, Redis killed, frozen and emptied of its
//! scripts, connections cut, a provider that throttles, errs and falls silent. At the end every pushed job is in exactly
//! one state, and the provider's ledger has every submitted one exactly once. `make soak SEED=7 MINUTES=30` goes on for
//! longer than the tests do.

use crate::support::*;
use nix::sys::signal::Signal;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::ErrorAnswer;
use paceline_store::Store;
use paceline_tests::stage::{ONE_CLASS, Process, Stage};
use std::time::{Duration, Instant};

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

fn troubled(deduplicates: bool) -> Scenario {
    let error =
        |status, share, delivered| ErrorAnswer { status, share, delivered, retry_after: None, body: None };
    Scenario {
        deduplicates,
        unanswered_share: 0.02,
        errors: vec![error(500, 0.02, true), error(503, 0.02, false)],
        rate_per_s: 300.0,
        burst: 60,
        ..slow(15)
    }
}

/// One thing that goes wrong; workers that were killed are replaced.
async fn something_happens(stage: &mut Stage, workers: &mut Vec<Process>, dice: &mut Dice) -> &'static str {
    let at = dice.below(workers.len());
    match dice.below(7) {
        0 | 1 => {
            workers.swap_remove(at).kill();
            workers.push(stage.process());
            "a worker was killed"
        }
        2 => {
            workers[at].signal(Signal::SIGSTOP);
            tokio::time::sleep(Duration::from_millis(200 + dice.below(3_500) as u64)).await;
            workers[at].signal(Signal::SIGCONT);
            "a worker was suspended"
        }
        3 => {
            stage.redis.kill();
            tokio::time::sleep(Duration::from_millis(dice.below(1_500) as u64)).await;
            stage.redis.run();
            "Redis was killed"
        }
        4 => {
            stage.redis.signal(Signal::SIGSTOP);
            tokio::time::sleep(Duration::from_millis(dice.below(2_500) as u64)).await;
            stage.redis.signal(Signal::SIGCONT);
            "Redis was frozen"
        }
        5 => {
            redis::cmd("SCRIPT").arg("FLUSH").exec(&mut stage.redis.connection()).expect("redis runs");
            "the scripts were flushed"
        }
        _ => {
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes");
            kill.exec(&mut stage.redis.connection()).expect("redis runs");
            "connections were cut"
        }
    }
}

async fn soak(deduplicates: bool, seed: u64, time: Duration) {
    let settings = ONE_CLASS.replace("rate = \"10000/s\"\nburst = 1000", "rate = \"400/s\"\nburst = 40");
    let settings = settings.replace("[class.bulk]\n", "[class.bulk]\nmax_spent = 100\nmax_lapses = 100\n");
    let settings = if deduplicates { settings } else { forgetful(&settings) };
    let mut stage = Stage::over(durable_redis(), troubled(deduplicates), &settings).await;
    let (mut dice, began, mut pushed, mut events) = (Dice(seed), Instant::now(), 0, Vec::new());
    let mut workers = vec![stage.process(), stage.process(), stage.process()];
    while began.elapsed() < time {
        push_until_taken(&stage, &stage.store, pushed..pushed + 60).await;
        pushed += 60;
        events.push(something_happens(&mut stage, &mut workers, &mut dice).await);
        tokio::time::sleep(Duration::from_millis(dice.below(600) as u64)).await;
    }
    stage.sandbox.set_scenario(Scenario { deduplicates, ..open_door() }).expect("a good scenario");
    // Nobody waits for a probe of an outage that is over.
    stage
        .store
        .hold(&stage.class(BULK), paceline_store::Held::Class, None, None, "test")
        .await
        .expect("redis runs");
    let depths = stage.await_drained(BULK).await;
    let told = || format!("SEED={seed} {depths:?} {events:?} {:?}", stage.ledger().summary);
    assert_eq!(total(&depths), pushed as u64, "{}", told());
    let (submitted, unconfirmed) = (depths.of(State::Submitted), depths.of(State::Unconfirmed));
    assert_eq!(submitted + unconfirmed, pushed as u64, "{}", told());
    let summary = stage.ledger().summary;
    assert_eq!(summary.duplicates, 0, "{}", told());
    assert!((submitted..=pushed as u64).contains(&summary.delivered), "{}", told());
    if deduplicates {
        assert_eq!((unconfirmed, summary.delivered), (0, pushed as u64), "{}", told());
    }
    drop(workers);
}

/// Without SEED another one each time, told in the failure.
async fn soaked(deduplicates: bool) {
    let clock =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = variable("SEED").unwrap_or(clock);
    let time =
        variable("MINUTES").map_or(Duration::from_secs(8), |minutes| Duration::from_secs(minutes * 60));
    soak(deduplicates, seed, time).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_at_once_where_the_provider_deduplicates() {
    soaked(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_at_once_where_a_person_is_asked() {
    soaked(false).await;
}
