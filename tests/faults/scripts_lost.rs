//! Redis forgets every script: failures 56. Each movement sends its own again, with no effect lost or doubled.

use crate::support::*;
use paceline_core::decide::{Draws, HoldCause, Seen};
use paceline_core::{Outcome, State, decide};
use paceline_store::{
    Batch, Cancelled, Claim, ClaimAsk, Cursor, Erased, Held, Pushed, Record, ReplayPace, Replayed, Settled,
    Settlement, Store,
};
use paceline_tests::stage::{ONE_CLASS, Stage};
use std::time::Duration;

fn flush(stage: &Stage) {
    redis::cmd("SCRIPT").arg("FLUSH").exec(&mut stage.redis.connection()).expect("it runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_vanish_while_busy_are_sent_again_and_nothing_is_lost_or_doubled() {
    let stage = Stage::new(slow(10), &with_class("concurrency = 10")).await;
    let worker = stage.worker();
    for chunk in 0..30 {
        flush(&stage);
        push_until_taken(&stage, &stage.store, chunk * 10..(chunk + 1) * 10).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let depths = stage.await_drained(BULK).await;
    assert_eq!((depths.of(State::Submitted), total(&depths)), (300, 300), "{depths:?}");
    assert_none_spent(&stage, State::Submitted).await;
    assert_delivered_once(&stage, 300);
    assert_eq!(stage.ledger().summary.requests, 300);
    assert_eq!(worker.health.problem(), None);
    worker.stopped().await;
}

/// One stage without a worker: every movement is the first call of its script.
struct Movements {
    stage: Stage,
}

impl Movements {
    async fn claim(&self, nonce: &str, lease_ms: u64) -> Batch {
        flush(&self.stage);
        let ask = ClaimAsk {
            worker: "test".into(),
            nonce: nonce.into(),
            max_jobs: 1,
            lease_ms,
            lookahead_ms: 0,
            solo_lapses: 2,
        };
        match self.stage.store.claim(&self.stage.class(BULK), &ask).await {
            Ok(Claim::Jobs(batch)) => batch,
            other => panic!("{other:?}"),
        }
    }

    async fn settle(&self, batch: &Batch, outcome: Outcome) -> Settled {
        flush(&self.stage);
        let class = &self.stage.config.classes.values().next().expect("there is one");
        let Record::Job(job) = &batch.jobs[0].record else { panic!("it can be read") };
        let draws = Draws { spread: 0.0, jitter: 0.0 };
        let settlement = Settlement {
            key: batch.jobs[0].key.clone(),
            birth: job.birth,
            deadline_ms: batch.deadline_ms,
            claimed_ms: batch.now_ms,
            probed: false,
            decision: decide(job, &outcome, &class.policy, Seen::default(), batch.now_ms, draws),
            decided_again: false,
            count: format!("test|{}", outcome.as_str()),
            history: Vec::new(),
        };
        let settled =
            self.stage.store.settle(&self.stage.class(BULK), &class.policy.trips, &[settlement]).await;
        settled.expect("it runs")[0]
    }
}

#[tokio::test]
async fn every_movement_works_when_its_script_is_gone() {
    let movements = Movements { stage: Stage::new(open_door(), ONE_CLASS).await };
    let (stage, class) = (&movements.stage, movements.stage.class(BULK));
    let store = &stage.store;
    flush(stage);
    assert_eq!(store.declare(&class).await, Ok(()));
    flush(stage);
    assert_eq!(store.push(&class, &jobs(0..3)).await, Ok(vec![Pushed::Created; 3]));

    let batch = movements.claim("1", 10_000).await;
    let Record::Job(job) = &batch.jobs[0].record else { panic!("it can be read") };
    flush(stage);
    let marks = [(batch.jobs[0].key.clone(), job.birth)];
    assert_eq!(store.start(&class, batch.deadline_ms, &marks).await, Ok(vec![true]));
    let accepted = Outcome::Accepted { message_id: None };
    assert_eq!(movements.settle(&batch, accepted.clone()).await, Settled::Moved(State::Submitted));
    assert_eq!(movements.settle(&batch, accepted).await, Settled::Already);

    movements.claim("2", 1).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    flush(stage);
    let reaped = store.reap(&class, 10, 5_000).await.expect("it runs");
    assert_eq!(reaped.jobs.len(), 1);
    let refused = Outcome::Terminal { reason: "no".into() };
    assert_eq!(movements.settle(&reaped, refused).await, Settled::Moved(State::Failed));
    flush(stage);
    let failed = [(reaped.jobs[0].key.clone(), State::Failed)];
    assert_eq!(
        store.replay(&class, ReplayPace { interval_ms: 0.0 }, &failed).await,
        Ok(vec![Replayed::Replayed])
    );
    flush(stage);
    assert_eq!(
        store.cancel(&class, &["bulk:2".into()]).await,
        Ok(vec![Cancelled::Cancelled(State::Cancelled)])
    );
    flush(stage);
    assert_eq!(store.erase(&class, "bulk:2").await, Ok(Erased::Erased(State::Cancelled)));
    flush(stage);
    assert_eq!(store.hold(&class, Held::Class, Some(HoldCause::Pause), None, "test").await, Ok(()));
    flush(stage);
    let depths = store.depths(&class).await.expect("it runs");
    let of = |state| depths.of(state);
    assert_eq!((of(State::Pending), of(State::Submitted), of(State::Cancelled)), (1, 1, 1), "{depths:?}");
    assert!(depths.holds[0].is_some());
    flush(stage);
    assert_eq!(store.list(&class, State::Pending, &Cursor::default(), 10).await.expect("it runs").len(), 1);
    flush(stage);
    assert_eq!(store.sweep(&class, State::Submitted, 0, 10).await, Ok(1));
    flush(stage);
    assert_eq!(store.get(&class, "bulk:0").await, Ok(None), "it was swept");
}
