//! Forgets jobs that have been over for longer than they are kept, in small chunks. Dead letters stay.

use crate::lane::Running;
use paceline_core::State;
use paceline_store::Store;
use rand::RngExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Jobs per call, so that no call holds Redis up.
const CHUNK: usize = 100;

/// Sweeps about once a minute, at a moment of its own, until told to stop.
pub(crate) async fn run(running: Arc<Running>, stop: CancellationToken) {
    let receipts = running.lane.class.receipt_retention_ms;
    let kept = [
        (State::Submitted, receipts),
        (State::Expired, receipts),
        (State::Cancelled, receipts),
        (State::Failed, running.lane.class.failed_retention_ms),
    ];
    loop {
        let pause_ms = rand::rng().random_range(30_000..60_000);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
            () = stop.cancelled() => return,
        }
        for (state, kept_ms) in kept {
            sweep(&running, state, kept_ms, &stop).await;
        }
    }
}

async fn sweep(running: &Running, state: State, kept_ms: u64, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        match running.store.sweep(&running.lane.at, state, kept_ms, CHUNK).await {
            Ok(CHUNK) => tokio::time::sleep(Duration::from_millis(20)).await,
            Ok(_) => return,
            Err(error) => {
                tracing::debug!(class = running.name(), %error, "sweeping failed; the next round goes on");
                return;
            }
        }
    }
}
