//! Records that this version cannot read, or not at all: failures 100. They are parked, bytes and all, where a
//! person sees them, and never stop the loop. And keys that are pushed again.

use crate::support::*;
use paceline_core::{JobKey, State};
use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::ErrorAnswer;
use paceline_store::keys::Keys;
use paceline_store::record::HEADER_BYTES;
use paceline_store::{NewJob, Pushed, Record, ReplayPace, Replayed, Store};
use paceline_tests::stage::{ONE_CLASS, Stage};
use paceline_tests::store::job;

/// Puts keys into an index, due long ago; what their records are is the test's.
struct Planter {
    connection: redis::Connection,
    stage: Stage,
    keys: Keys,
}

impl Planter {
    fn new(stage: Stage) -> Self {
        Self { connection: stage.redis.connection(), keys: Keys::new(stage.config.namespace.clone()), stage }
    }

    fn index(&mut self, state: State, key: &str) {
        let index = self.keys.index(&self.stage.class(BULK), state);
        redis::cmd("ZADD").arg(index).arg(1).arg(key).exec(&mut self.connection).expect("it runs");
    }

    fn record(&mut self, key: &str, bytes: &[u8]) {
        let name = self.keys.job(&self.stage.class(BULK), key);
        redis::cmd("SET").arg(name).arg(bytes).exec(&mut self.connection).expect("it runs");
    }

    fn bytes(&mut self, key: &str) -> Option<Vec<u8>> {
        let name = self.keys.job(&self.stage.class(BULK), key);
        redis::cmd("GET").arg(name).query(&mut self.connection).expect("it runs")
    }

    /// Three that cannot be read: one of a version to come, one cut short, one that is not there.
    fn unreadable(&mut self, state: State) {
        let mut newer = vec![2; 200];
        newer.extend(b"what the next version writes\n");
        self.record("newer", &newer);
        self.record("odd", &[1; 10]);
        for key in ["newer", "odd", "missing"] {
            self.index(state, key);
        }
    }
}

async fn record_of(stage: &Stage, key: &str) -> (Option<State>, Record) {
    let stored = stage.job(BULK, key).await;
    (stored.state, stored.record)
}

async fn assert_parked_as_they_were(planter: &mut Planter) {
    let stage = &planter.stage;
    assert_eq!(record_of(stage, "newer").await, (Some(State::Deferred), Record::Newer(2)));
    assert_eq!(record_of(stage, "odd").await, (Some(State::Deferred), Record::Odd));
    assert_eq!(record_of(stage, "missing").await, (Some(State::Deferred), Record::Missing));
    assert_eq!(planter.bytes("odd"), Some(vec![1; 10]));
    let newer = planter.bytes("newer").expect("it is there");
    assert!(newer.starts_with(&[2; 200]) && newer.ends_with(b"what the next version writes\n"));
}

#[tokio::test]
async fn records_nobody_here_can_read_are_parked_unchanged_and_the_loop_goes_on() {
    for settings in [ONE_CLASS.to_owned(), forgetful(ONE_CLASS)] {
        let mut planter = Planter::new(Stage::new(open_door(), &settings).await);
        planter.unreadable(State::Queued);
        planter.stage.push(BULK, 20).await;
        let worker = planter.stage.worker();
        let depths = planter.stage.await_drained(BULK).await;
        assert_eq!((depths.of(State::Submitted), depths.of(State::Deferred)), (20, 3), "{depths:?}");
        assert_parked_as_they_were(&mut planter).await;
        assert_eq!(count(&planter.stage, "|parked|deferred").await, 3);
        // Parked, and neither failed nor counted: a replay brings it back for whoever can read it.
        let newer = [("newer".to_owned(), State::Deferred)];
        let pace = ReplayPace { interval_ms: 0.0 };
        let replayed =
            planter.stage.store.replay(&planter.stage.class(BULK), pace, &newer).await.expect("redis runs");
        assert_eq!(replayed, [Replayed::Replayed]);
        until("it is parked again", async || count(&planter.stage, "|parked|deferred").await == 4).await;
        assert_parked_as_they_were(&mut planter).await;
        assert_delivered_once(&planter.stage, 20);
        worker.stopped().await;
    }
}

#[tokio::test]
async fn a_reaper_that_finds_unreadable_records_parks_them_too() {
    let mut planter = Planter::new(Stage::new(open_door(), ONE_CLASS).await);
    planter.unreadable(State::InFlight);
    let worker = planter.stage.worker();
    let depths = planter.stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Deferred), 3, "{depths:?}");
    assert_parked_as_they_were(&mut planter).await;
    worker.stopped().await;
}

/// A record that scripts can read and Rust cannot, and one whose body is gone.
#[tokio::test]
async fn a_damaged_record_costs_only_its_own_job() {
    let mut planter = Planter::new(Stage::new(open_door(), ONE_CLASS).await);
    let class = planter.stage.class(BULK);
    let with_campaign = NewJob { campaign: "ab".into(), ..job("campaign") };
    let long = format!("{{\"payload\":{{\"key\":\"{}\"}}}}", "x".repeat(5_000));
    let with_body = NewJob { document: long.into_bytes(), ..job("body") };
    planter.stage.store.push(&class, &[with_campaign, with_body]).await.expect("redis runs");
    let mut bytes = planter.bytes("campaign").expect("it was pushed");
    bytes[HEADER_BYTES..HEADER_BYTES + 2].copy_from_slice(b"\xff\xfe");
    planter.record("campaign", &bytes);
    redis::cmd("DEL").arg(planter.keys.body(&class, "body")).exec(&mut planter.connection).expect("it runs");
    planter.stage.push(BULK, 20).await;
    let worker = planter.stage.worker();
    let depths = planter.stage.await_drained(BULK).await;
    assert_eq!(depths.of(State::Submitted), 20, "{depths:?}");
    assert_eq!(record_of(&planter.stage, "campaign").await, (Some(State::Deferred), Record::Odd));
    assert_eq!(planter.bytes("campaign"), Some(bytes), "not a byte was changed");
    let (state, Record::Job(failed)) = record_of(&planter.stage, "body").await else {
        panic!("it can be read")
    };
    let reason = &failed.history.last().expect("it says why").reason;
    assert!(state == Some(State::Failed) && reason.starts_with("invalid_document: "), "{state:?} {reason}");
    worker.stopped().await;
}

/// A newer producer writes fields that this version does not know; they are not its to drop.
#[tokio::test]
async fn unknown_fields_are_kept_byte_for_byte_through_retry_and_dead_letter() {
    let document = "{ \"later\":{\"deep\":[1,2.50,{\"a\":null}]},\"payload\": {\"key\":\"k\"},\n\"zz\":\"\\u00e9\u{e9}\" , \"cost\":1}";
    let refusing = Scenario { always: Some(ErrorAnswer::new(503)), ..open_door() };
    let stage = Stage::new(refusing, &with_class("max_spent = 2")).await;
    let new = NewJob { key: JobKey::new("k").expect("it is valid"), document: document.into(), ..job("k") };
    stage.store.push(&stage.class(BULK), &[new]).await.expect("redis runs");
    let worker = stage.worker();
    for round in 0..2 {
        stage.await_count(BULK, State::Deferred, 1).await;
        let (_, Record::Job(job)) = record_of(&stage, "k").await else { panic!("it can be read") };
        assert_eq!(String::from_utf8_lossy(&job.document), document);
        assert_eq!((job.counters.spent, u64::from(job.counters.attempts)), (2, 2 + 2 * round));
        if round == 1 {
            stage.sandbox.set_scenario(open_door()).expect("it is valid");
        }
        let key = [("k".to_owned(), State::Deferred)];
        let replayed = stage.store.replay(&stage.class(BULK), ReplayPace { interval_ms: 0.0 }, &key).await;
        assert_eq!(replayed, Ok(vec![Replayed::Replayed]));
    }
    stage.await_count(BULK, State::Submitted, 1).await;
    assert_delivered_once(&stage, 1);
    worker.stopped().await;
}

#[tokio::test]
async fn a_key_that_is_pushed_again_while_it_is_on_the_wire_is_sent_once() {
    let stage = Stage::new(slow(500), ONE_CLASS).await;
    stage.push(BULK, 5).await;
    let worker = stage.worker();
    await_requests(&stage, 5).await;
    let class = stage.class(BULK);
    let again = stage.store.push(&class, &jobs(0..5)).await.expect("redis runs");
    assert_eq!(again, vec![Pushed::Duplicate(State::InFlight); 5]);
    let other = NewJob { document: b"{\"payload\":2}".to_vec(), ..job("bulk:0") };
    assert_eq!(stage.store.push(&class, &[other]).await, Ok(vec![Pushed::Conflict(State::InFlight)]));
    let depths = stage.await_drained(BULK).await;
    assert_eq!((depths.of(State::Submitted), total(&depths)), (5, 5), "{depths:?}");
    let again = stage.store.push(&class, &jobs(0..5)).await.expect("redis runs");
    assert_eq!(again, vec![Pushed::Duplicate(State::Submitted); 5], "a receipt remembers its key");
    assert_delivered_once(&stage, 5);
    assert_eq!(stage.ledger().summary.requests, 5);
    worker.stopped().await;
}
