//! How a job ends for another reason than an answer: it expires, or somebody cancels it.

use crate::support::*;
use paceline_core::State;
use paceline_store::{Cancelled, NewJob, Store};
use paceline_tests::peer::{Act, Gate, Peer};
use paceline_tests::stage::Stage;
use paceline_tests::store;

/// A job that expires so long from now.
async fn push_expiring(stage: &Stage, class: &str, key: &str, in_ms: u64) {
    let expires_at_ms = stage.depths(class).await.now_ms + in_ms;
    push(stage, class, NewJob { expires_at_ms, ..store::job(key) }).await;
}

#[tokio::test]
async fn a_job_that_expires_while_it_waits_is_expired_or_unconfirmed() {
    let peer = Peer::start(|heard| match heard.path.as_str() {
        "/throttled" => Act::wait(429, "60"),
        "/ambiguous" => Act::wait(500, "60"),
        _ => Act::accept(),
    })
    .await;
    let paths = ["throttled", "ambiguous"].map(|class| format!("[class.{class}]\npath = \"/{class}\""));
    let settings = changed(
        &lanes(&["throttled", "ambiguous"]),
        &[("path = \"/v1/send\"\n", ""), ("[class.throttled]", &paths[0]), ("[class.ambiguous]", &paths[1])],
    );
    let stage = before(&peer, &settings).await;
    for class in ["throttled", "ambiguous"] {
        push_expiring(&stage, class, "job", 1_200).await;
    }
    let worker = stage.worker();
    await_state(&stage, "ambiguous", "job", State::Unconfirmed).await;
    // A throttle with a wait holds the credential, and expiry is seen in claim: a person lifts it here.
    await_attempt(&stage, "throttled", "job").await;
    let key = store::name("throttled-key");
    let held = paceline_store::Held::Budget(&key);
    stage.store.hold(&stage.class("throttled"), held, None, None, "ada").await.unwrap();
    let stored = await_state(&stage, "throttled", "job", State::Expired).await;
    assert_eq!(job_of(&stored).counters.throttles, 1);
    assert_eq!(peer.heard().len(), 2, "one request each");
    worker.stopped().await;
}

#[tokio::test]
async fn a_job_that_expired_before_it_was_tried_is_not_sent() {
    let stage = Stage::new(wide(), &one_class(&[])).await;
    for i in 0..20 {
        push_expiring(&stage, "bulk", &format!("gone:{i}"), 1).await;
    }
    stage.push("bulk", 20).await;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let workers = [stage.worker(), stage.worker()];
    let depths = stage.await_drained("bulk").await;
    assert_eq!((depths.of(State::Expired), depths.of(State::Submitted)), (20, 20), "{depths:?}");
    assert_eq!(stage.ledger().summary.requests, 20);
    for worker in workers {
        worker.stopped().await;
    }
}

#[tokio::test]
async fn a_waiting_job_that_is_cancelled_is_not_sent() {
    let stage = Stage::new(wide(), &one_class(&[])).await;
    let at_ms = stage.depths("bulk").await.now_ms + 600;
    for key in ["scheduled", "kept"] {
        push(&stage, "bulk", NewJob { at_ms, ..store::job(key) }).await;
    }
    let worker = stage.worker();
    let keys = ["scheduled".to_owned(), "unheard-of".to_owned()];
    let words = stage.store.cancel(&stage.class("bulk"), &keys).await.unwrap();
    assert_eq!(words, [Cancelled::Cancelled(State::Cancelled), Cancelled::Missing]);
    let depths = stage.await_drained("bulk").await;
    assert_eq!((depths.of(State::Cancelled), depths.of(State::Submitted)), (1, 1), "{depths:?}");
    let keys = stage.ledger().entries.into_iter().map(|entry| entry.payload_key.unwrap()).collect::<Vec<_>>();
    assert_eq!(keys, ["kept"]);
    worker.stopped().await;
}

/// Cancelled in flight: what was accepted stays so, what was refused is cancelled and not tried again, and what may
/// have gone out is a person's to judge.
#[tokio::test]
async fn a_job_cancelled_in_flight_ends_with_its_attempt() {
    let classes = ["accepted", "busy", "throttled", "lost"];
    let gate = Gate::default();
    let shut = gate.clone();
    let peer = Peer::start(move |heard| {
        let end = match &heard.path[1..] {
            "accepted" => Act::accept(),
            "busy" => Act::status(503),
            "throttled" => Act::status(429),
            _ => Act::Reset,
        };
        Act::When(shut.clone(), Box::new(end))
    })
    .await;
    let stage =
        before(&peer, &changed(&lanes(&classes), &[("= 1500", "= 20000"), ("= 2000", "= 20000")])).await;
    for class in classes {
        push_to(&stage, class, &format!("/{class}")).await;
    }
    let worker = stage.worker();
    for class in classes {
        stage.await_count(class, State::InFlight, 1).await;
        let words = stage.store.cancel(&stage.class(class), &["job".to_owned()]).await.unwrap();
        assert_eq!(words, [Cancelled::Marked], "{class}");
    }
    gate.open();
    let ends = [State::Submitted, State::Cancelled, State::Cancelled, State::Unconfirmed];
    for (class, end) in classes.into_iter().zip(ends) {
        let depths = stage.await_drained(class).await;
        assert_eq!(depths.of(end), 1, "{class}: {depths:?}");
    }
    assert_eq!(peer.heard().len(), classes.len(), "and none was tried again");
    worker.stopped().await;
}

#[tokio::test]
async fn a_cancelled_pending_job_that_may_have_gone_out_is_unconfirmed() {
    let peer = Peer::start(|_| Act::wait(500, "3600")).await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    push_to(&stage, "lane", "/").await;
    let worker = stage.worker();
    await_attempt(&stage, "lane", "job").await;
    let words = stage.store.cancel(&stage.class("lane"), &["job".to_owned()]).await.unwrap();
    assert_eq!(words, [Cancelled::Cancelled(State::Unconfirmed)]);
    assert_eq!(stage.depths("lane").await.of(State::Unconfirmed), 1);
    worker.stopped().await;
}
