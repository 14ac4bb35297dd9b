//! What the fault tests share: settings, waiting, and reading both sides' truth.

use paceline_core::{Job, State};
use paceline_rehearsal::Scenario;
use paceline_store::{Cursor, Depths, NewJob, Pushed, Record, RedisStore, Store, StoreError, scripts};
use paceline_tests::redis_server::RedisServer;
use paceline_tests::stage::{ONE_CLASS, Stage};
use paceline_tests::store::job;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The class of every test here.
pub(crate) const BULK: &str = "bulk";
/// Longer than anything here should take, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A provider that answers at once and deduplicates.
pub(crate) fn open_door() -> Scenario {
    Scenario { rate_per_s: 100_000.0, burst: 10_000, ..Scenario::default() }
}

/// A provider that takes its time.
pub(crate) fn slow(latency_ms: u64) -> Scenario {
    Scenario { latency_ms, ..open_door() }
}

/// The settings of one class, with these lines added to the class.
pub(crate) fn with_class(lines: &str) -> String {
    ONE_CLASS.replace("[class.bulk]\n", &format!("[class.bulk]\n{lines}\n"))
}

/// The provider does not deduplicate, and the settings know.
pub(crate) fn forgetful(settings: &str) -> String {
    settings.replace("deduplicates = true", "deduplicates = false")
}

/// A Redis that has written whatever it acknowledged.
pub(crate) fn durable_redis() -> RedisServer {
    RedisServer::with(&["--appendonly", "yes", "--appendfsync", "always"])
}

/// Jobs `bulk:<i>` of a range.
pub(crate) fn jobs(range: Range<usize>) -> Vec<NewJob> {
    range.map(|i| job(&format!("{BULK}:{i}"))).collect()
}

/// Pushes until Redis says that it has them, as a producer does.
pub(crate) async fn push_until_taken(stage: &Stage, store: &RedisStore, range: Range<usize>) -> Vec<Pushed> {
    let (class, jobs) = (stage.class(BULK), jobs(range));
    let began = Instant::now();
    loop {
        match store.push(&class, &jobs).await {
            Ok(pushed) => return pushed,
            Err(error) => assert!(began.elapsed() < PATIENCE, "never taken: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Looks again and again until it holds, without holding up the runtime.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until so many requests have arrived at the provider.
pub(crate) async fn await_requests(stage: &Stage, n: u64) {
    until("the requests arrive", async || stage.sandbox.summary().requests >= n).await;
}

/// Jobs in all states together.
pub(crate) fn total(depths: &Depths) -> u64 {
    depths.counts.iter().sum()
}

/// Every job of a state.
pub(crate) async fn jobs_in(stage: &Stage, state: State) -> Vec<Job> {
    let listed =
        stage.store.list(&stage.class(BULK), state, &Cursor::default(), 1_000).await.expect("redis runs");
    let job = |record| match record {
        Record::Job(job) => *job,
        other => panic!("not a job: {other:?}"),
    };
    listed.into_iter().map(|listed| job(listed.record)).collect()
}

/// The counts of the last minutes, added up: `code|outcome|state`.
pub(crate) async fn counts(stage: &Stage) -> BTreeMap<String, u64> {
    let minutes = stage.store.counts(&stage.class(BULK), 3).await.expect("redis runs");
    let mut sums = BTreeMap::new();
    for (code, n) in minutes.into_iter().flat_map(|(_, codes)| codes) {
        *sums.entry(code).or_default() += n;
    }
    sums
}

/// One of the counts.
pub(crate) async fn count(stage: &Stage, code: &str) -> u64 {
    counts(stage).await.get(code).copied().unwrap_or(0)
}

/// By the provider's own record: these messages, each once, whoever asked how often.
pub(crate) fn assert_delivered_once(stage: &Stage, n: u64) {
    let summary = stage.ledger().summary;
    assert_eq!((summary.accepted, summary.delivered, summary.duplicates), (n, n, 0), "{summary:?}");
}

/// No job paid for what was not its fault.
pub(crate) async fn assert_none_spent(stage: &Stage, state: State) {
    for job in jobs_in(stage, state).await {
        assert_eq!((job.counters.spent, job.counters.lapses), (0, 0), "{}: {:?}", job.key, job.history);
    }
}

/// The SHA-1 by which a movement is called: it is in every such request.
pub(crate) fn sha(movement: &str) -> &'static str {
    let script = scripts::all().into_iter().find(|script| script.name == movement);
    &script.expect("every movement is a script").sha
}

/// Loads every script, so that each first call is by its hash.
pub(crate) fn load_scripts(redis: &RedisServer) {
    let mut connection = redis.connection();
    for script in scripts::all() {
        let load = redis::cmd("SCRIPT").arg("LOAD").arg(&script.source).query::<String>(&mut connection);
        assert_eq!(load.expect("it loads"), script.sha);
    }
}

/// Counts again and again that no job is nowhere, or twice somewhere.
pub(crate) struct Tally {
    stop: CancellationToken,
    task: JoinHandle<usize>,
}

impl Tally {
    /// From now on so many jobs exist.
    pub(crate) fn of(stage: &Stage, pushed: u64) -> Self {
        let (store, class, stop) = (stage.store.clone(), stage.class(BULK), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut looks = 0;
            while !stopped.is_cancelled() {
                match store.depths(&class).await {
                    Ok(depths) => assert_eq!(total(&depths), pushed, "{depths:?}"),
                    Err(error @ StoreError::Bug { .. }) => panic!("{error}"),
                    Err(_) => {}
                }
                looks += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            looks
        });
        Self { stop, task }
    }

    /// Fails if it was ever wrong.
    pub(crate) async fn was_right(self) {
        self.stop.cancel();
        assert!(self.task.await.expect("every look counted right") > 0);
    }
}
