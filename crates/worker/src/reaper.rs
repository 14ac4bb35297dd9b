//! Takes over lapsed leases: what became of their attempts is nobody's knowledge but Redis's marks.

use crate::attempt::Lease;
use crate::lane::Running;
use crate::settler::{Ended, Settler};
use paceline_core::history::Attempt;
use paceline_core::outcome::WORKER_LOST;
use paceline_core::{Job, Outcome, Seen};
use paceline_store::{Batch, Record, Store};
use rand::RngExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Jobs per call.
const MAX_BATCH: usize = 50;
/// Long enough to settle what was taken over, short enough for the next reaper.
const LEASE_MS: u64 = 5_000;
/// After trouble with Redis: leases that look lapsed belong to workers that are about to settle.
const QUIET: Duration = Duration::from_secs(3);

/// Reaps every few seconds, at a moment of its own, until told to stop.
pub(crate) async fn run(running: Arc<Running>, settler: Settler, stop: CancellationToken) {
    let margin_ms = running.lane.lease_ms.saturating_sub(running.lane.class.deadline_ms);
    loop {
        let pause_ms = rand::rng().random_range(margin_ms / 2..=margin_ms);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
            () = stop.cancelled() => return,
        }
        if running.health.troubled_within(QUIET) {
            continue;
        }
        while let Some(MAX_BATCH) = reap(&running, &settler).await {}
    }
}

/// How many were taken over; `None` when Redis did not answer.
async fn reap(running: &Running, settler: &Settler) -> Option<usize> {
    let sent = Instant::now();
    let batch = match running.store.reap(&running.lane.at, MAX_BATCH, LEASE_MS).await {
        Ok(batch) => batch,
        Err(error) => {
            running.health.trouble();
            tracing::warn!(class = running.name(), %error, "reaping failed; the next round finds what is left");
            return None;
        }
    };
    let reaped = batch.jobs.len();
    if reaped > 0 {
        tracing::warn!(class = running.name(), reaped, "took over leases that lapsed with their worker");
        metrics::counter!("paceline_lapses_total", "class" => running.name().to_owned())
            .increment(reaped as u64);
    }
    hand_over(running, settler, batch, sent);
    Some(reaped)
}

fn hand_over(running: &Running, settler: &Settler, batch: Batch, sent: Instant) {
    let lease = Lease {
        deadline_ms: batch.deadline_ms,
        redis_now_ms: batch.now_ms,
        first_sent: sent,
        claimed: Instant::now(),
        probe: None,
    };
    for claimed in batch.jobs {
        let (job, outcome) = match claimed.record {
            Record::Job(job) => {
                let outcome = what_became(running, &job);
                (job, outcome)
            }
            // Only its index entry will move; the outcome is a formality.
            _ => {
                (Box::new(Job::new(stand_in(), Vec::new(), 0)), Outcome::Invalid { reason: "record".into() })
            }
        };
        settler.settle(Ended {
            key: claimed.key,
            job,
            outcome,
            attempt: Attempt { code: WORKER_LOST.into(), ..Attempt::default() },
            lease,
            seen: Seen::default(),
            kept: false,
            slot: None,
        });
    }
}

fn stand_in() -> paceline_core::JobKey {
    paceline_core::JobKey::new("unreadable").expect("a constant key is valid")
}

/// Without the mark of a start no byte was written; where the provider deduplicates nothing is marked, and a
/// repeat does no harm.
fn what_became(running: &Running, job: &Job) -> Outcome {
    let marks = running.lane.class.policy.dedup_window_ms.is_none();
    if marks && !job.flags.started {
        Outcome::NotSent { reason: WORKER_LOST.into() }
    } else {
        Outcome::ambiguous(WORKER_LOST)
    }
}
