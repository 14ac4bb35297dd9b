//! Walks what is kept of each class once in a while, records against indexes, and puts right what stands wrong: what
//! a lost file, an eviction or a hand in the data left behind. In a healthy store it finds nothing.

use crate::lane::Running;
use paceline_store::{Step, StoreError, Walk};
use rand::RngExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// One walk of a class in so long, by whichever worker comes first.
const EVERY: Duration = Duration::from_secs(3_600);
/// Between two steps of a hundred jobs: a million jobs take about half an hour, and nobody notices.
const PAUSE: Duration = Duration::from_millis(200);

/// Until told to stop.
pub(crate) async fn run(running: Arc<Running>, stop: CancellationToken) {
    // The first walk comes soon: a worker often starts because something happened.
    let mut wait_ms = rand::rng().random_range(20_000..60_000);
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            () = stop.cancelled() => return,
        }
        wait_ms = rand::rng().random_range(60_000..120_000);
        if let Err(error) = walk(&running, &stop).await {
            tracing::debug!(class = running.name(), %error, "the walk ended early; the next begins anew");
        }
    }
}

async fn walk(running: &Running, stop: &CancellationToken) -> Result<(), StoreError> {
    if !running.store.begin_walk(&running.lane.at, EVERY.as_millis() as u64).await? {
        return Ok(());
    }
    let mut walk = Some(Walk::START);
    while let Some(at) = walk {
        let step = running.store.reconcile_step(&running.lane.at, &at, true).await?;
        tell(running, &step);
        walk = step.next;
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
    Ok(())
}

fn tell(running: &Running, step: &Step) {
    for (key, found, target) in &step.wrong {
        let target = target.map_or("gone", paceline_core::State::as_str);
        tracing::warn!(
            class = running.name(),
            key,
            ?found,
            target,
            "record and indexes disagreed: put right"
        );
        metrics::counter!("paceline_reconciled_total", "class" => running.name().to_owned(), "state" => target)
            .increment(1);
    }
}
