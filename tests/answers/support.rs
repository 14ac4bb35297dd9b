//! What these tests share: settings made of [`ONE_CLASS`], a stage in front of a peer, and a job looked at closely.

use paceline_core::decide::HoldCause;
use paceline_core::history::Attempt;
use paceline_core::{Job, State};
use paceline_rehearsal::Scenario;
use paceline_store::{NewJob, Record, Store, Stored};
use paceline_tests::peer::Peer;
use paceline_tests::redis_server::RedisServer;
use paceline_tests::stage::{ONE_CLASS, Stage};
use paceline_tests::store;
use std::time::{Duration, Instant};

/// A provider that throttles nobody.
pub(crate) fn wide() -> Scenario {
    Scenario { rate_per_s: 100_000.0, burst: 10_000, ..Scenario::default() }
}

/// The settings with other text in some places; a place that is not there is the test's mistake.
pub(crate) fn changed(settings: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(settings.to_owned(), |settings, (from, to)| {
        assert!(settings.contains(from), "the settings do not hold {from:?}");
        settings.replace(from, to)
    })
}

/// [`ONE_CLASS`], changed.
pub(crate) fn one_class(changes: &[(&str, &str)]) -> String {
    changed(ONE_CLASS, changes)
}

/// Each name a class with a credential of its own, all with what [`ONE_CLASS`] says of its class.
pub(crate) fn lanes<S: AsRef<str>>(names: &[S]) -> String {
    let shared = [
        ("[credential.bulk-key]\n", ""),
        ("[class.bulk]\ncredential = \"bulk-key\"\n", "[defaults.class]\n"),
    ];
    names.iter().map(AsRef::as_ref).fold(one_class(&shared), |settings, name| {
        settings + &format!("[credential.{name}-key]\n[class.{name}]\ncredential = \"{name}-key\"\n")
    })
}

/// `lane-0`, `lane-1`, …
pub(crate) fn numbered(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("lane-{i}")).collect()
}

/// A stage whose provider is a peer.
pub(crate) async fn before(peer: &Peer, settings: &str) -> Stage {
    let settings = settings.replace("{base_url}", &peer.base_url());
    Stage::over(RedisServer::without_aof(), Scenario::default(), &settings).await
}

/// Lets so many failures in a row pass without calling it an outage: a test of one job's own caps has many fail.
pub(crate) fn without_outages(stage: &mut Stage) {
    for class in stage.config.classes.values_mut() {
        class.policy.trips.failing_run = u8::MAX;
    }
}

/// Pushes one job with its own path; its key is `job`.
pub(crate) async fn push_to(stage: &Stage, class: &str, path: &str) {
    let document = format!(r#"{{"payload":{{"key":"job"}},"request":{{"path":"{path}"}}}}"#);
    push(stage, class, document_job("job", document)).await;
}

/// Pushes one new job.
pub(crate) async fn push(stage: &Stage, class: &str, job: NewJob) {
    let pushed = stage.store.push(&stage.class(class), &[job]).await.expect("redis runs");
    assert_eq!(pushed, [paceline_store::Pushed::Created]);
}

/// A job with a document of the test's own.
pub(crate) fn document_job(key: &str, document: impl Into<Vec<u8>>) -> NewJob {
    NewJob { document: document.into(), ..store::job(key) }
}

/// The job in a record that can be read.
pub(crate) fn job_of(stored: &Stored) -> &Job {
    match &stored.record {
        Record::Job(job) => job,
        odd => panic!("{odd:?}"),
    }
}

/// Its last attempt.
pub(crate) fn last(stored: &Stored) -> &Attempt {
    job_of(stored).history.last().expect("it was tried")
}

/// Waits until a job is as wanted.
pub(crate) async fn await_job(
    stage: &Stage,
    class: &str,
    key: &str,
    wanted: impl Fn(&Stored) -> bool,
) -> Stored {
    let began = Instant::now();
    loop {
        let stored = stage.job(class, key).await;
        if wanted(&stored) {
            return stored;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{class} {key} never came to it: {stored:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a job is in a state.
pub(crate) async fn await_state(stage: &Stage, class: &str, key: &str, state: State) -> Stored {
    await_job(stage, class, key, |stored| stored.state == Some(state)).await
}

/// Waits until an attempt of a job has ended and the job has not left again.
pub(crate) async fn await_attempt(stage: &Stage, class: &str, key: &str) -> Stored {
    let tried =
        |stored: &Stored| stored.state != Some(State::InFlight) && job_of(stored).counters.attempts > 0;
    await_job(stage, class, key, tried).await
}

/// Waits until so many requests have arrived.
pub(crate) async fn await_heard(peer: &Peer, n: usize) {
    let began = Instant::now();
    while peer.heard().len() < n {
        assert!(began.elapsed() < Duration::from_secs(60), "{} of {n} requests arrived", peer.heard().len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The hold on the class, and the hold on its credential.
pub(crate) async fn holds(stage: &Stage, class: &str) -> [Option<HoldCause>; 2] {
    let depths = stage.depths(class).await;
    [0, 1].map(|at| depths.holds[at].as_ref().map(|hold| hold.cause))
}

/// Waits until the credential of a class is held for this cause.
pub(crate) async fn await_hold(stage: &Stage, class: &str, on: usize, cause: HoldCause) {
    let began = Instant::now();
    while holds(stage, class).await[on] != Some(cause) {
        assert!(began.elapsed() < Duration::from_secs(60), "{class} was never held for {cause}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
