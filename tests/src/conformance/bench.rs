//! A store on the bench: what a scenario needs beside the movements themselves.

use crate::store::name;
use paceline_store::keys::Keys;
use paceline_store::record::{HEADER_BYTES, VERSION};
use paceline_store::{ClassRef, MemoryStore, Record, RedisStore, Store};
use redis::{Cmd, Value};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// A store under test.
pub trait Bench {
    /// Its kind.
    type Store: Store;
    /// The store.
    fn store(&self) -> &Self::Store;
    /// Lets time go by: really on Redis, at once in memory.
    fn pass(&self, ms: u64) -> impl Future<Output = ()>;
    /// Puts a record nobody wrote in the place of a job's. Not one of a job: those are pushed.
    fn plant(&self, class: &ClassRef, key: &str, record: &Record) -> impl Future<Output = ()>;
    /// Sets a job's expiry to the beginning of time: it has expired.
    fn expire(&self, class: &ClassRef, key: &str) -> impl Future<Output = ()>;
    /// What was counted, of all minutes together.
    fn counts(&self, class: &ClassRef) -> impl Future<Output = BTreeMap<String, u64>>;
}

/// Other tests, and other programs, may have the machine for themselves for a while.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where a record's header has the six bytes of its expiry.
const EXPIRES_AT: usize = 38;
/// A scenario may begin in one and end in the next.
const MINUTES: u64 = 2;

fn sum(minutes: Vec<(u64, Vec<(String, u64)>)>) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (code, n) in minutes.into_iter().flat_map(|(_, counts)| counts) {
        *sum.entry(code).or_default() += n;
    }
    sum
}

/// A memory store of its own.
#[derive(Default)]
pub struct MemoryBench(MemoryStore);

impl Bench for MemoryBench {
    type Store = MemoryStore;

    fn store(&self) -> &MemoryStore {
        &self.0
    }

    async fn pass(&self, ms: u64) {
        self.0.advance(ms);
    }

    async fn plant(&self, class: &ClassRef, key: &str, record: &Record) {
        self.0.plant(class, key, record.clone());
    }

    async fn expire(&self, class: &ClassRef, key: &str) {
        let stored = self.0.get(class, key).await.expect("memory answers");
        let Some(Record::Job(mut job)) = stored.map(|stored| stored.record) else { panic!("no job {key}") };
        job.expires_at_ms = Some(1);
        self.0.plant(class, key, Record::Job(job));
    }

    async fn counts(&self, class: &ClassRef) -> BTreeMap<String, u64> {
        sum(self.0.counts(class, MINUTES))
    }
}

/// A store on a Redis or a cluster that other scenarios use too.
pub struct RedisBench {
    store: RedisStore,
    url: String,
    /// How its keys are spelled, for scenarios that look behind the trait.
    pub keys: Keys,
}

impl RedisBench {
    /// On the Redis or the cluster at this address.
    pub fn on(url: &str) -> Self {
        let namespace = name("t");
        let store = RedisStore::open(url, namespace.clone(), PATIENCE).expect("a good URL");
        Self { store, url: url.to_owned(), keys: Keys::new(namespace) }
    }

    /// A plain command, past the store.
    pub async fn raw(&self, command: &Cmd) -> Value {
        let answer = match self.url.strip_prefix("redis+cluster://") {
            Some(nodes) => {
                let nodes = nodes.split(',').map(|node| format!("redis://{node}"));
                let client = redis::cluster::ClusterClient::new(nodes).expect("good URLs");
                command.query_async(&mut client.get_async_connection().await.expect("the cluster runs")).await
            }
            None => {
                let client = redis::Client::open(self.url.as_str()).expect("a good URL");
                let connection = client.get_multiplexed_async_connection().await;
                command.query_async(&mut connection.expect("redis runs")).await
            }
        };
        answer.expect("redis takes the command")
    }
}

impl Bench for RedisBench {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }

    async fn pass(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms + 1)).await;
    }

    async fn plant(&self, class: &ClassRef, key: &str, record: &Record) {
        let at = self.keys.job(class, key);
        let command = match record {
            Record::Missing => redis::cmd("DEL").arg(at).take(),
            // A whole header whose lengths lie beyond the record.
            Record::Odd => redis::cmd("SET").arg(at).arg(vec![VERSION; HEADER_BYTES]).take(),
            // Only its version tells that it is not to be read.
            Record::Newer(version) => {
                let record = [&[*version][..], &[0; HEADER_BYTES - 1]].concat();
                redis::cmd("SET").arg(at).arg(record).take()
            }
            Record::Job(_) => panic!("a job is pushed, not planted"),
        };
        self.raw(&command).await;
    }

    async fn expire(&self, class: &ClassRef, key: &str) {
        let at = self.keys.job(class, key);
        self.raw(redis::cmd("SETRANGE").arg(at).arg(EXPIRES_AT).arg(b"\0\0\0\0\0\x01")).await;
    }

    async fn counts(&self, class: &ClassRef) -> BTreeMap<String, u64> {
        sum(self.store.counts(class, MINUTES).await.expect("redis runs"))
    }
}
