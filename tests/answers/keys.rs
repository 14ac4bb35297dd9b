//! One key, one message: whatever producers push again, whoever claims it, and however long it waits.

use crate::support::*;
use paceline_core::State;
use paceline_store::{NewJob, Pushed, Store};
use paceline_tests::peer::{Act, Gate, Peer};
use paceline_tests::stage::Stage;
use paceline_tests::store;
use std::time::{Duration, Instant};

async fn again(stage: &Stage, class: &str, key: &str, document: &str) -> Pushed {
    let job = document_job(key, document);
    stage.store.push(&stage.class(class), &[job]).await.expect("redis runs").remove(0)
}

const FIRST: &str = r#"{"payload":{"key":"first"}}"#;
const OTHER: &str = r#"{"payload":{"key":"other"}}"#;

/// failures 67, 68: the answer says what is stored, in every state the first may be in; the first content is what is
/// sent, and once.
#[tokio::test]
async fn pushed_again_a_key_answers_with_its_state_and_is_not_sent_again() {
    let gate = Gate::default();
    let shut = gate.clone();
    let peer = Peer::start(move |_| Act::When(shut.clone(), Box::new(Act::accept()))).await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    assert_eq!(again(&stage, "lane", "key", FIRST).await, Pushed::Created);
    assert_eq!(again(&stage, "lane", "key", FIRST).await, Pushed::Duplicate(State::Queued));
    assert_eq!(again(&stage, "lane", "key", OTHER).await, Pushed::Conflict(State::Queued));

    let worker = stage.worker();
    stage.await_count("lane", State::InFlight, 1).await;
    assert_eq!(again(&stage, "lane", "key", FIRST).await, Pushed::Duplicate(State::InFlight));
    assert_eq!(
        again(&stage, "lane", "key", OTHER).await,
        Pushed::Conflict(State::InFlight),
        "while the first runs"
    );

    gate.open();
    stage.await_count("lane", State::Submitted, 1).await;
    assert_eq!(again(&stage, "lane", "key", FIRST).await, Pushed::Duplicate(State::Submitted));
    assert_eq!(again(&stage, "lane", "key", OTHER).await, Pushed::Conflict(State::Submitted));

    // Another key shows that the worker is awake and finds nothing of the first.
    assert_eq!(again(&stage, "lane", "next", OTHER).await, Pushed::Created);
    stage.await_count("lane", State::Submitted, 2).await;
    let bodies: Vec<Vec<u8>> = peer.heard().into_iter().map(|heard| heard.body).collect();
    assert_eq!(bodies, [br#"{"key":"first"}"#.to_vec(), br#"{"key":"other"}"#.to_vec()]);
    worker.stopped().await;
}

/// failures 67: a producer that repeats a whole batch after a lost answer, while it is being sent, doubles nothing.
#[tokio::test]
async fn a_batch_pushed_again_and_again_while_it_is_sent_is_sent_once() {
    let stage = Stage::new(wide(), &one_class(&[])).await;
    let workers = [stage.worker(), stage.worker()];
    for _ in 0..5 {
        stage.push("bulk", 100).await;
    }
    stage.await_count("bulk", State::Submitted, 100).await;
    stage.push("bulk", 100).await;
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 100, "{depths:?}");
    assert_eq!((stage.ledger().summary.requests, stage.ledger().summary.delivered), (100, 100));
    for worker in workers {
        worker.stopped().await;
    }
}

/// failures 67: one that ended badly is remembered too: a person replays it, a push does not.
#[tokio::test]
async fn a_failed_key_is_not_sent_again_by_a_push() {
    let peer = Peer::start(|_| Act::status(400)).await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    again(&stage, "lane", "key", FIRST).await;
    let worker = stage.worker();
    await_state(&stage, "lane", "key", State::Failed).await;
    assert_eq!(again(&stage, "lane", "key", FIRST).await, Pushed::Duplicate(State::Failed));
    assert_eq!(again(&stage, "lane", "key", OTHER).await, Pushed::Conflict(State::Failed));
    again(&stage, "lane", "next", OTHER).await;
    await_state(&stage, "lane", "next", State::Failed).await;
    assert_eq!(peer.heard().len(), 2);
    worker.stopped().await;
}

/// failures 67: a key is remembered as long as its receipt. Pushed again after that it is a new job, which leaves under
/// the same send id, so that a provider that still recognises it delivers nothing twice.
#[tokio::test]
async fn a_key_pushed_again_after_retention_is_a_new_job_under_the_same_send_id() {
    let stage = Stage::new(wide(), &one_class(&[])).await;
    let worker = stage.worker();
    assert_eq!(again(&stage, "bulk", "key", FIRST).await, Pushed::Created);
    await_state(&stage, "bulk", "key", State::Submitted).await;
    let swept = stage.store.sweep(&stage.class("bulk"), State::Submitted, 0, 10).await;
    assert_eq!(swept, Ok(1));
    assert_eq!(again(&stage, "bulk", "key", FIRST).await, Pushed::Created);
    await_state(&stage, "bulk", "key", State::Submitted).await;
    let summary = stage.ledger().summary;
    assert_eq!((summary.requests, summary.delivered, summary.repeats_deduplicated), (2, 1, 1), "{summary:?}");
    worker.stopped().await;
}

/// failures 68: with the fingerprint of its meaning the same content in another order is the same content; without
/// one the bytes themselves are compared.
#[tokio::test]
async fn the_same_content_in_another_order_is_a_duplicate_by_its_fingerprint() {
    let stage = Stage::new(wide(), &one_class(&[])).await;
    let (one, other) = (br#"{"payload":{"a":1,"b":2}}"#, br#"{ "payload": {"b": 2, "a": 1} }"#);
    let class = stage.class("bulk");
    let mut words = Vec::new();
    for document in [&one[..], &other[..]] {
        let fingerprint = paceline_core::document::fingerprint(document).unwrap();
        let canonical = NewJob { fingerprint, ..document_job("canonical", document) };
        words.extend(stage.store.push(&class, &[canonical, document_job("bytes", document)]).await.unwrap());
    }
    let (duplicate, conflict) = (Pushed::Duplicate(State::Queued), Pushed::Conflict(State::Queued));
    assert_eq!(words, [Pushed::Created, Pushed::Created, duplicate, conflict]);
}

/// Two classes at one account are two lines of jobs: the same key in both is two messages, with two send ids.
#[tokio::test]
async fn the_same_key_in_two_classes_of_one_account_is_two_messages() {
    let account = "account = \"acme\"\n[class.a]\ngroup = \"acme\"";
    let other = "account = \"acme\"\n[class.b]\ngroup = \"acme\"";
    let settings = changed(&lanes(&["a", "b"]), &[("[class.a]", account), ("[class.b]", other)]);
    let settings = settings + "[account.acme]\nrate = \"10000/s\"\nburst = 1000\n";
    let stage = Stage::new(wide(), &settings).await;
    let worker = stage.worker();
    for class in ["a", "b"] {
        let jobs: Vec<NewJob> = (0..20).map(|i| store::job(&format!("user:{i}"))).collect();
        stage.store.push(&stage.class(class), &jobs).await.unwrap();
    }
    for class in ["a", "b"] {
        assert_eq!(stage.await_drained(class).await.of(State::Submitted), 20);
    }
    let ledger = stage.ledger();
    assert_eq!((ledger.summary.delivered, ledger.entries.len()), (40, 40), "{:?}", ledger.summary);
    for i in 0..20 {
        let key = format!("user:{i}");
        let entries = ledger.entries.iter().filter(|entry| entry.payload_key.as_ref() == Some(&key));
        assert_eq!(entries.count(), 2, "{key}");
    }
    worker.stopped().await;
}

/// failures 47: what is not due is not claimed, so no lease can lapse on it, however many workers wait for it.
#[tokio::test]
async fn a_job_due_long_after_a_lease_would_have_lapsed_is_sent_once() {
    let short =
        [("deadline_ms = 2000", "deadline_ms = 1000"), ("lease_margin_ms = 1000", "lease_margin_ms = 500")];
    let stage = Stage::new(wide(), &one_class(&short)).await;
    let workers = [stage.worker(), stage.worker(), stage.worker(), stage.worker()];
    let now_ms = stage.depths("bulk").await.now_ms;
    let due_ms = now_ms + 4_000;
    let jobs: Vec<NewJob> = (0..50).map(|i| NewJob { at_ms: due_ms, ..store::job(&i.to_string()) }).collect();
    stage.store.push(&stage.class("bulk"), &jobs).await.unwrap();
    let began = Instant::now();
    loop {
        let depths = stage.depths("bulk").await;
        if depths.now_ms >= due_ms {
            break;
        }
        assert_eq!((depths.of(State::Queued), depths.of(State::InFlight), depths.scheduled), (50, 0, 50));
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let depths = stage.await_drained("bulk").await;
    assert_eq!(depths.of(State::Submitted), 50, "{depths:?}");
    let ledger = stage.ledger();
    assert_eq!((ledger.summary.requests, ledger.summary.delivered), (50, 50), "{:?}", ledger.summary);
    assert!(
        ledger.entries.iter().all(|entry| entry.first_arrived_us / 1_000 >= due_ms),
        "and none too early"
    );
    for worker in workers {
        worker.stopped().await;
    }
}
