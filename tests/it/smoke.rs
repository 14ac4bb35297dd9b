use paceline_core::decide::{Draws, Seen};
use paceline_core::policy::{OnAmbiguous, Policy, Trips};
use paceline_core::{Outcome, State, backoff::Backoff, decide};
use paceline_store::*;
use paceline_tests::redis_server::RedisServer;
use paceline_tests::store::*;
use std::time::Duration;

fn policy() -> Policy {
    Policy {
        max_spent: 8,
        max_unknown: 3,
        max_lapses: 3,
        solo_lapses: 2,
        throttle_horizon_ms: 86_400_000,
        tries_per_hour: 60,
        backoff: Backoff::new(500, 60_000).unwrap(),
        on_ambiguous: OnAmbiguous::Ask,
        dedup_window_ms: None,
        trips: Trips::default(),
    }
}

#[tokio::test]
async fn smoke() {
    let redis = RedisServer::start();
    let store = RedisStore::open(&redis.url(), name("t"), Duration::from_secs(2)).unwrap();
    let class = class("bulk");
    assert_eq!(store.push(&class, &[job("a")]).await, Err(StoreError::UnknownClass));
    store.declare(&class).await.unwrap();
    let jobs = [job("a"), job("b"), job("c")];
    assert_eq!(store.push(&class, &jobs).await.unwrap(), [Pushed::Created, Pushed::Created, Pushed::Created]);
    assert_eq!(store.push(&class, &jobs).await.unwrap()[0], Pushed::Duplicate(State::Queued));
    let ask = ClaimAsk {
        worker: "w".into(),
        nonce: "n1".into(),
        max_jobs: 2,
        lease_ms: 20_000,
        lookahead_ms: 20,
        solo_lapses: 2,
    };
    let Claim::Jobs(batch) = store.claim(&class, &ask).await.unwrap() else { panic!() };
    assert_eq!(batch.jobs.len(), 2);
    let Claim::Jobs(again) = store.claim(&class, &ask).await.unwrap() else { panic!() };
    assert_eq!(again.jobs, batch.jobs);
    let mut settlements = Vec::new();
    let mut keys = Vec::new();
    for claimed in &batch.jobs {
        let Record::Job(job) = &claimed.record else { panic!() };
        let outcome = if claimed.key == "a" {
            Outcome::Accepted { message_id: Some("m1".into()) }
        } else {
            Outcome::Throttled { retry_after_ms: Some(500), scope: paceline_core::outcome::Scope::Credential }
        };
        let decision = decide(
            job,
            &outcome,
            &policy(),
            Seen::default(),
            batch.now_ms,
            Draws { spread: 0.0, jitter: 0.0 },
        );
        keys.push((claimed.key.clone(), job.birth));
        settlements.push(Settlement {
            key: claimed.key.clone(),
            birth: job.birth,
            deadline_ms: batch.deadline_ms,
            decision,
            decided_again: false,
            count: "202|accepted".into(),
            history: b"{\"at_ms\":1}\n".to_vec(),
        });
    }
    assert_eq!(store.start(&class, batch.deadline_ms, &keys).await.unwrap(), [true, true]);
    assert_eq!(
        store.settle(&class, &Trips::default(), &settlements).await.unwrap(),
        [Settled::Moved(State::Submitted), Settled::Moved(State::Pending)]
    );
    assert_eq!(
        store.settle(&class, &Trips::default(), &settlements).await.unwrap(),
        [Settled::Already, Settled::Already]
    );
    let depths = store.depths(&class).await.unwrap();
    println!("{depths:?}");
    let _ = (store.claim(&class, &ClaimAsk { nonce: "n2".into(), ..ask.clone() }).await.unwrap());
    println!("{:?}", store.get(&class, "a").await.unwrap());
    println!("{:?}", store.reap(&class, 10, 5000).await.unwrap());
    println!("{:?}", store.cancel(&class, &["b".into(), "a".into(), "x".into()]).await.unwrap());
    println!("{:?}", store.list(&class, State::Cancelled, &Cursor::default(), 10).await.unwrap());
    println!("{:?}", store.erase(&class, "a").await.unwrap());
    println!(
        "{:?}",
        store
            .replay(&class, ReplayPace { interval_ms: 5.0 }, &[("a".into(), State::Deferred)])
            .await
            .unwrap()
    );
    println!("{:?}", store.sweep(&class, State::Submitted, 0, 10).await.unwrap());
    store.hold(&class, Held::Class, Some(paceline_core::decide::HoldCause::Pause), None, "me").await.unwrap();
    println!("{:?}", store.claim(&class, &ClaimAsk { nonce: "n3".into(), ..ask }).await.unwrap());
    println!("{:?}", store.counts(&class, 2).await.unwrap());
}
