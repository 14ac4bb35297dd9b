//! What spends an attempt, and how many requests that makes on the wire: never more than the cap, never multiplied.

use crate::support::*;
use paceline_core::State;
use paceline_store::Stored;
use paceline_tests::peer::{Act, Heard, Peer};
use paceline_tests::stage::Stage;
use std::time::Duration;

/// How many jobs each class gets.
const JOBS: usize = 5;

/// A class per path; each of its jobs asks that path.
async fn classes_at(peer: &Peer, paths: &[&str], changes: &[(&str, &str)]) -> Stage {
    let mut stage = before(peer, &changed(&lanes(paths), changes)).await;
    without_outages(&mut stage);
    for class in paths {
        for i in 0..JOBS {
            let document = format!(r#"{{"payload":{{"key":"{i}"}},"request":{{"path":"/{class}"}}}}"#);
            push(&stage, class, document_job(&i.to_string(), document)).await;
        }
    }
    stage
}

fn requests(peer: &Peer, class: &str) -> usize {
    peer.heard().iter().filter(|heard| heard.path[1..] == *class).count()
}

async fn stored(stage: &Stage, class: &str) -> Vec<Stored> {
    let mut all = Vec::new();
    for i in 0..JOBS {
        all.push(stage.job(class, &i.to_string()).await);
    }
    all
}

/// What each class of these tests meets.
fn fate(heard: &Heard) -> Act {
    let mixed = [Act::status(503), Act::Reset, Act::status(408), Act::Close];
    match &heard.path[1..] {
        "throttled" if heard.nth <= 5 => Act::status(429),
        "throttled" => Act::accept(),
        "throttled-for-ever" => Act::status(429),
        "unavailable" => Act::status(503),
        "reset" => Act::Reset,
        "closed" => Act::Close,
        "silent" => Act::Hang,
        "mixed" => mixed[heard.nth % mixed.len()].clone(),
        "odd" => Act::status(418),
        "moved" => Act::Say(paceline_tests::peer::answer(307, &[("location", "/throttled")], "")),
        other => panic!("no fate for {other}"),
    }
}

/// failures 73: five throttles and then an acceptance spend nothing, however small the cap.
#[tokio::test]
async fn throttles_spend_no_attempts() {
    let peer = Peer::start(fate).await;
    let stage =
        classes_at(&peer, &["throttled"], &[("[defaults.class]\n", "[defaults.class]\nmax_spent = 2\n")])
            .await;
    let worker = stage.worker();
    let depths = stage.await_drained("throttled").await;
    assert_eq!(depths.of(State::Submitted), JOBS as u64, "{depths:?}");
    for stored in stored(&stage, "throttled").await {
        let counters = job_of(&stored).counters;
        assert_eq!((counters.spent, counters.throttles, counters.attempts), (0, 5, 6), "{stored:?}");
    }
    assert_eq!(requests(&peer, "throttled"), JOBS * 6);
    worker.stopped().await;
}

/// failures 73: throttles have a cap of their own, by age; what ends there waits for a person with that reason.
#[tokio::test]
async fn a_job_throttled_beyond_its_horizon_waits_for_a_person() {
    let peer = Peer::start(fate).await;
    let horizon = [("[defaults.class]\n", "[defaults.class]\nthrottle_horizon_s = 1\n")];
    let stage = classes_at(&peer, &["throttled-for-ever"], &horizon).await;
    let worker = stage.worker();
    let depths = stage.await_drained("throttled-for-ever").await;
    assert_eq!(depths.of(State::Deferred), JOBS as u64, "{depths:?}");
    for stored in stored(&stage, "throttled-for-ever").await {
        assert_eq!(last(&stored).reason, "throttled beyond its horizon");
        assert_eq!(job_of(&stored).counters.spent, 0);
    }
    worker.stopped().await;
}

/// failures 77: as many requests as the cap allows and not one more, whatever breaks, and none is lost or failed.
#[tokio::test]
async fn exactly_the_cap_is_sent_and_then_a_person_is_asked() {
    let classes = ["unavailable", "reset", "closed", "mixed"];
    let peer = Peer::start(fate).await;
    let stage =
        classes_at(&peer, &classes, &[("[defaults.class]\n", "[defaults.class]\nmax_spent = 4\n")]).await;
    let workers = [stage.worker(), stage.worker()];
    for class in classes {
        let depths = stage.await_drained(class).await;
        assert_eq!(depths.of(State::Deferred), JOBS as u64, "{class}: {depths:?}");
        assert_eq!(requests(&peer, class), JOBS * 4, "{class}");
        for stored in stored(&stage, class).await {
            let counters = job_of(&stored).counters;
            assert_eq!(
                (counters.spent, counters.throttles, counters.attempts),
                (4, 0, 4),
                "{class}: {stored:?}"
            );
            assert!(last(&stored).reason.starts_with("4 attempts spent: "), "{class}: {stored:?}");
        }
    }
    for worker in workers {
        worker.stopped().await;
    }
}

/// failures 77: silence is a timeout, and a timeout is one request.
#[tokio::test]
async fn exactly_the_cap_is_sent_into_silence() {
    let peer = Peer::start(fate).await;
    let changes = [
        ("[defaults.class]\n", "[defaults.class]\nmax_spent = 3\n"),
        ("first_byte_timeout_ms = 1500", "first_byte_timeout_ms = 200"),
    ];
    let stage = classes_at(&peer, &["silent"], &changes).await;
    let worker = stage.worker();
    let depths = stage.await_drained("silent").await;
    assert_eq!(
        (depths.of(State::Deferred), requests(&peer, "silent")),
        (JOBS as u64, JOBS * 3),
        "{depths:?}"
    );
    worker.stopped().await;
}

/// failures 77: a redirect is one request; nothing underneath follows it.
#[tokio::test]
async fn a_redirect_is_one_request() {
    let peer = Peer::start(fate).await;
    let mut stage = classes_at(&peer, &["moved"], &[]).await;
    for class in stage.config.classes.values_mut() {
        class.policy.trips.refused_run = u8::MAX;
    }
    let worker = stage.worker();
    let depths = stage.await_drained("moved").await;
    assert_eq!((depths.of(State::Failed), peer.heard().len()), (JOBS as u64, JOBS), "{depths:?}");
    worker.stopped().await;
}

/// A word that is not in the vocabulary: three attempts, then a person; loud, and never terminal.
#[tokio::test]
async fn an_unknown_answer_is_tried_three_times_and_then_waits_for_a_person() {
    let peer = Peer::start(fate).await;
    let stage = classes_at(&peer, &["odd"], &[]).await;
    let worker = stage.worker();
    let depths = stage.await_drained("odd").await;
    assert_eq!((depths.of(State::Deferred), requests(&peer, "odd")), (JOBS as u64, JOBS * 3), "{depths:?}");
    for stored in stored(&stage, "odd").await {
        assert_eq!((last(&stored).outcome.as_str(), last(&stored).code.as_str()), ("unknown", "418"));
    }
    // The remote side is there and says something: no hold.
    assert_eq!(holds(&stage, "odd").await, [None, None]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(requests(&peer, "odd"), JOBS * 3, "and no more of it");
    worker.stopped().await;
}
