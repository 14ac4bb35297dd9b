//! What Redis says about itself, and where each class's jobs have been so far.

use super::{RedisStore, answers};
use crate::keys::ClassRef;
use crate::movement::{Result, Store};
use paceline_core::{Name, State};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts of a server, as it reports them; in a cluster, of one of its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// `redis` or `valkey`.
    pub product: String,
    /// `7.0.15`.
    pub version: String,
    /// `noeviction`, `allkeys-lru`, …
    pub eviction: String,
    /// 0: no limit.
    pub max_memory_bytes: u64,
    /// Every write is appended to a file.
    pub has_aof: bool,
    /// When its AOF reaches the disk: `everysec`, `always`, `no`; empty where it may not be asked.
    pub fsync: String,
    /// Replicas that follow it.
    pub replicas: u64,
    /// It is a replica: it refuses writes.
    pub is_replica: bool,
    /// Its clock ahead of ours, in ms.
    pub clock_ahead_ms: i64,
}

/// A class whose jobs are under another group than the settings say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// The class.
    pub class: Name,
    /// Where its jobs are.
    pub group: Name,
    /// How many of them are not done.
    pub jobs: u64,
}

impl RedisStore {
    /// What the server says about itself.
    pub async fn server_facts(&self) -> Result<ServerFacts> {
        let place = self.keys.deployment();
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("memory").arg("persistence").arg("replication");
        let text = answers::text(&self.wire.query(&info, &place).await?)?;
        let fields: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once(':')).collect();
        let field = |name: &str| fields.get(name).map_or("", |value| value.trim());
        let is_valkey = field("server_name") == "valkey" || !field("valkey_version").is_empty();
        Ok(ServerFacts {
            product: if is_valkey { "valkey" } else { "redis" }.into(),
            version: field(if is_valkey { "valkey_version" } else { "redis_version" }).into(),
            eviction: field("maxmemory_policy").into(),
            max_memory_bytes: field("maxmemory").parse().unwrap_or(0),
            has_aof: field("aof_enabled") == "1",
            fsync: self.fsync(&place).await,
            replicas: field("connected_slaves").parse().unwrap_or(0),
            is_replica: field("role") == "slave",
            clock_ahead_ms: self.clock_ahead_ms(&place).await?,
        })
    }

    /// An ACL may refuse CONFIG: then nobody knows.
    async fn fsync(&self, place: &str) -> String {
        let mut get = redis::cmd("CONFIG");
        get.arg("GET").arg("appendfsync");
        let answer = self.wire.query(&get, place).await.unwrap_or(redis::Value::Nil);
        answers::texts(&answer).into_iter().nth(1).unwrap_or_default()
    }

    async fn clock_ahead_ms(&self, place: &str) -> Result<i64> {
        let ours = || {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis().cast_signed())
        };
        let before = ours();
        let time = self.wire.query(&redis::cmd("TIME"), place).await?;
        let middle = i128::midpoint(before, ours());
        let redis::Value::Array(parts) = &time else { return Ok(0) };
        let part = |index: usize| -> i128 {
            parts
                .get(index)
                .and_then(|part| answers::text(part).ok())
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        Ok(i64::try_from(part(0) * 1_000 + part(1) / 1_000 - middle).unwrap_or(i64::MAX))
    }

    /// Writes down the group of each class. One whose group has changed while jobs are under the old one is not
    /// written down and given back: no worker would ever find those.
    pub async fn claim_groups(&self, classes: &[ClassRef]) -> Result<Vec<Stranded>> {
        let key = self.keys.groups();
        let mut stranded = Vec::new();
        for class in classes {
            let mut read = redis::cmd("HGET");
            read.arg(&key).arg(class.class.as_str());
            let known = answers::text(&self.wire.query(&read, &key).await?)?;
            if let Ok(group) = Name::new(&known)
                && group != class.group
            {
                let old = ClassRef { group: group.clone(), ..class.clone() };
                let depths = self.depths(&old).await?;
                let dead = [State::Deferred, State::Unconfirmed].map(|state| depths.of(state));
                let jobs = depths.waiting() + depths.of(State::InFlight) + dead.into_iter().sum::<u64>();
                if jobs > 0 {
                    stranded.push(Stranded { class: class.class.clone(), group, jobs });
                    continue;
                }
            }
            let mut write = redis::cmd("HSET");
            write.arg(&key).arg(class.class.as_str()).arg(class.group.as_str());
            self.wire.query(&write, &key).await?;
        }
        Ok(stranded)
    }
}
