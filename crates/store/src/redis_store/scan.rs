//! Finding the records of a class: they share a hash tag, so all of them are on one node.

use super::{RedisStore, answers};
use crate::keys::ClassRef;
use crate::movement::Result;

impl RedisStore {
    /// The next keys of jobs that have a record; 0 as a cursor begins, 0 as an answer ends. `count` is how many
    /// keys of any kind Redis looks at.
    pub(crate) async fn scan_records(
        &self,
        class: &ClassRef,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<String>)> {
        let prefix = self.keys.job(class, "");
        let mut scan = redis::cmd("SCAN");
        // Names have no letters that mean something to MATCH.
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(count);
        let (cursor, names) = answers::scanned(&self.wire.query(&scan, &prefix).await?)?;
        Ok((cursor, names.iter().filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned)).collect()))
    }

    /// Whether it is this caller's turn to walk the class: at most one in `every_ms`, over all workers.
    pub async fn begin_walk(&self, class: &ClassRef, every_ms: u64) -> Result<bool> {
        let key = self.keys.reconciled(class);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg("1").arg("NX").arg("PX").arg(every_ms);
        Ok(self.wire.query(&set, &key).await? == redis::Value::Okay)
    }
}
