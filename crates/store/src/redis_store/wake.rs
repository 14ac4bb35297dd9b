//! How an idle worker learns of a push within about a millisecond: a blocking pop of a marker.
//!
//! A marker wakes one worker, not all; a lost one costs a poll interval and no job, since only markers are popped.

use super::wire::Wire;
use crate::error::StoreError;
use crate::keys::{ClassRef, Keys};
use crate::movement::Result;
use paceline_core::Name;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long one wait blocks: one idle command per wait.
pub(super) const BLOCK: Duration = Duration::from_secs(5);

/// Waits for pushes into a set of classes.
pub struct Waker {
    wire: Arc<Wire>,
    /// Per connection: the markers it waits for, and whose they are.
    waits: Vec<Vec<(String, Name)>>,
}

impl Waker {
    pub(super) fn new(wire: Arc<Wire>, classes: &[ClassRef], keys: &Keys) -> Self {
        let mut groups: BTreeMap<Option<&Name>, Vec<(String, Name)>> = BTreeMap::new();
        for class in classes {
            let tag = wire.is_cluster().then_some(&class.group);
            groups.entry(tag).or_default().push((keys.wake(class), class.class.clone()));
        }
        let waits = groups.into_values().collect();
        Self { wire, waits }
    }

    /// Calls `woken` with the class of every marker, for ever; after an error it reconnects by and by. A broken
    /// wait is the first to tell that Redis may be another than before: then it calls `broken`, class by class.
    pub async fn run(self, woken: impl Fn(&Name) + Send + Sync, broken: impl Fn(&Name) + Send + Sync) {
        let (woken, broken) = (&woken, &broken);
        let waits = self.waits.iter().map(|markers| wait_for_ever(&self.wire, markers, woken, broken));
        futures_util::future::join_all(waits).await;
    }
}

async fn wait_for_ever(
    wire: &Wire,
    markers: &[(String, Name)],
    woken: &(impl Fn(&Name) + Send + Sync),
    broken: &(impl Fn(&Name) + Send + Sync),
) {
    loop {
        if let Err(error) = wait(wire, markers, woken).await {
            tracing::debug!(%error, "waiting for pushes was interrupted");
            markers.iter().for_each(|(_, class)| broken(class));
        }
        // Whatever was pushed meanwhile left no marker here.
        markers.iter().for_each(|(_, class)| woken(class));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn wait(wire: &Wire, markers: &[(String, Name)], woken: &impl Fn(&Name)) -> Result<()> {
    let mut connection = wire.blocking().await?;
    let mut pop = redis::cmd("BLPOP");
    markers.iter().for_each(|(key, _)| {
        pop.arg(key);
    });
    pop.arg(BLOCK.as_secs());
    loop {
        let answer = connection.query(&pop).await?;
        let popped: Option<(String, String)> =
            redis::from_redis_value(answer).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        if let Some((key, _)) = popped
            && let Some((_, class)) = markers.iter().find(|(marker, _)| *marker == key)
        {
            woken(class);
        }
    }
}
