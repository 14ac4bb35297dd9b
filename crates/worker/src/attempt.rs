//! One attempt, a pipeline of named steps: read → mark started → wait for its moment → check lateness → send →
//! classify → decide → hand to the settler.

use crate::backoff::RedisBackoff;
use crate::lane::{Running, draws};
use crate::settler::{Ended, Settler};
use crate::steps::{Step, reached};
use futures_util::FutureExt;
use paceline_core::decide::Probe;
use paceline_core::history::Attempt;
use paceline_core::outcome::SHUTDOWN;
use paceline_core::policy::OnAmbiguous;
use paceline_core::send_id::send_id;
use paceline_core::vocabulary::{self, Verdict};
use paceline_core::{Answer, Decision, Document, Job, Outcome, Outgoing, Seen, State, decide};
use paceline_store::{Claimed, Record, Settlement, Store};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a batch was claimed under.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    /// The fencing token.
    pub(crate) deadline_ms: u64,
    /// Redis's clock at the claim.
    pub(crate) redis_now_ms: u64,
    /// When this process first sent the claim: lateness counts from here.
    pub(crate) first_sent: Instant,
    /// When the answer came.
    pub(crate) claimed: Instant,
    /// The hold that this claim probes.
    pub(crate) probe: Option<Probe>,
}

impl Lease {
    /// Redis's clock now, as far as this process can tell.
    pub(crate) fn now_ms(&self) -> u64 {
        self.redis_now_ms + self.claimed.elapsed().as_millis() as u64
    }
}

/// A job that can be sent, with its slot.
struct Ready {
    claimed: Claimed,
    job: Box<Job>,
    outgoing: Outgoing,
    slot: OwnedSemaphorePermit,
}

/// How a sending ended: what came back, and how long it took.
struct Sent {
    answer: Answer,
    latency_ms: u64,
}

/// Runs the attempts of one claim to their ends.
pub(crate) async fn run_batch(
    running: Arc<Running>,
    settler: Settler,
    abort: CancellationToken,
    lease: Lease,
    jobs: Vec<Claimed>,
    slots: Vec<OwnedSemaphorePermit>,
) {
    let batch = Arc::new(BatchRun { running, settler, abort, lease });
    let mut ready: Vec<Ready> =
        jobs.into_iter().zip(slots).filter_map(|(claimed, slot)| batch.read(claimed, slot)).collect();
    reached(Step::Claimed);
    if batch.running.lane.class.policy.dedup_window_ms.is_none() {
        ready = batch.mark_started(ready).await;
    }
    reached(Step::Started);
    let max_batch = batch.running.lane.transport.max_batch().max(1);
    let mut sendings = Vec::new();
    while !ready.is_empty() {
        let rest = ready.split_off(ready.len().min(max_batch));
        let together = std::mem::replace(&mut ready, rest);
        sendings.push(batch.clone().attempt(together));
    }
    futures_util::future::join_all(sendings.into_iter().map(tokio::spawn)).await;
}

struct BatchRun {
    running: Arc<Running>,
    settler: Settler,
    abort: CancellationToken,
    lease: Lease,
}

impl BatchRun {
    /// Record and document become a request, or an end without one.
    fn read(&self, claimed: Claimed, slot: OwnedSemaphorePermit) -> Option<Ready> {
        let job = match &claimed.record {
            Record::Job(job) => job.clone(),
            odd => {
                let problem = odd.problem().unwrap_or_default();
                tracing::error!(
                    class = self.running.name(),
                    key = claimed.key,
                    problem,
                    "parked a record that cannot be read"
                );
                self.settler.park(&claimed.key, self.lease, slot);
                return None;
            }
        };
        match self.outgoing(&job) {
            Ok(outgoing) => Some(Ready { claimed, job, outgoing, slot }),
            Err(fault) => {
                self.end(
                    &claimed.key,
                    job,
                    &Outcome::Invalid { reason: fault.to_string().into() },
                    Attempt::default(),
                    slot,
                );
                None
            }
        }
    }

    fn outgoing(&self, job: &Job) -> Result<Outgoing, paceline_core::Fault> {
        let lane = &self.running.lane;
        let document = Document::parse(&job.document, self.lease.now_ms())?;
        let request = lane.class.request.overlaid(&document.request).render(&document.payload)?;
        let send_id = send_id(self.running.deployment_id, &lane.class.name, &job.key, job.revision);
        Ok(Outgoing {
            send_id: send_id.to_string(),
            request,
            deadline: Duration::from_millis(lane.class.deadline_ms),
        })
    }

    /// Where the provider does not deduplicate, no byte is written before Redis knows that it may be.
    async fn mark_started(&self, ready: Vec<Ready>) -> Vec<Ready> {
        let marks: Vec<(String, [u8; 8])> =
            ready.iter().map(|ready| (ready.claimed.key.clone(), ready.job.birth)).collect();
        let mut backoff = RedisBackoff::default();
        loop {
            match self.running.store.start(&self.running.lane.at, self.lease.deadline_ms, &marks).await {
                Ok(fresh) => {
                    // A lease that is not ours any more is somebody else's to settle.
                    let fresh = ready.into_iter().zip(fresh).filter(|(_, fresh)| *fresh);
                    return fresh.map(|(ready, _)| self.noted(ready)).collect();
                }
                Err(error) if self.is_late() || self.abort.is_cancelled() => {
                    tracing::warn!(class = self.running.name(), %error, "could not mark jobs as started in time");
                    return ready
                        .into_iter()
                        .filter_map(|ready| self.hand_back(ready, "not marked in time"))
                        .collect();
                }
                Err(_) => backoff.pause().await,
            }
        }
    }

    /// Redis may forget this start with its last second; then this process is the only one that knows.
    fn noted(&self, ready: Ready) -> Ready {
        if self.running.lane.class.policy.on_ambiguous == OnAmbiguous::Ask {
            self.running.in_hand.add(&ready.claimed.key, ready.job.birth, self.lease.deadline_ms);
        }
        ready
    }

    async fn attempt(self: Arc<Self>, jobs: Vec<Ready>) {
        let offset = jobs.iter().map(|ready| ready.claimed.offset_ms).max().unwrap_or(0);
        tokio::time::sleep_until(self.lease.claimed + Duration::from_millis(offset)).await;
        let mut ready = jobs;
        if self.abort.is_cancelled() {
            ready.into_iter().for_each(|ready| drop(self.hand_back(ready, "shutting down")));
            return;
        }
        if self.is_late() {
            ready.into_iter().for_each(|ready| drop(self.hand_back(ready, "too late to write")));
            return;
        }
        reached(Step::Sending);
        let outgoing: Vec<Outgoing> = ready.iter().map(|ready| ready.outgoing.clone()).collect();
        for sent in self.send(&outgoing).await.into_iter().rev() {
            reached(Step::Answered);
            let Some(ready) = ready.pop() else { break };
            self.classify_and_end(ready, sent);
        }
    }

    /// A suspended process hands back instead of sending: half of the margin is for the settle.
    fn is_late(&self) -> bool {
        let lane = &self.running.lane;
        let margin_ms = lane.lease_ms.saturating_sub(lane.class.deadline_ms) / 2;
        self.lease.first_sent.elapsed() > Duration::from_millis(margin_ms)
    }

    /// One answer per job, whatever the transport does: overrun, panic, or answer short.
    async fn send(&self, outgoing: &[Outgoing]) -> Vec<Sent> {
        let began = Instant::now();
        let deadline = Duration::from_millis(self.running.lane.class.deadline_ms);
        let sending =
            AssertUnwindSafe(async { self.running.lane.transport.send(outgoing).await }).catch_unwind();
        // The transport keeps the deadline itself; one that overruns is dropped before the lease is in danger.
        let answers = tokio::select! {
            answers = tokio::time::timeout(deadline + Duration::from_millis(250), sending) => match answers {
                Ok(Ok(answers)) => answers,
                Ok(Err(panic)) => vec![unanswered("panic", &panic_text(panic.as_ref())); outgoing.len()],
                Err(_) => vec![unanswered("deadline", "the transport overran its deadline"); outgoing.len()],
            },
            () = self.abort.cancelled() => vec![unanswered(SHUTDOWN, "the worker was shut down"); outgoing.len()],
        };
        let latency_ms = began.elapsed().as_millis() as u64;
        let missing = outgoing.len().saturating_sub(answers.len());
        answers
            .into_iter()
            .chain(std::iter::repeat_n(unanswered("transport", "no answer for this job"), missing))
            .take(outgoing.len())
            .map(|answer| Sent { answer, latency_ms })
            .collect()
    }

    fn classify_and_end(&self, ready: Ready, sent: Sent) {
        let verdict = vocabulary::classify(&sent.answer, &self.running.lane.rules, self.lease.now_ms());
        let attempt = attempt_of(&verdict, sent.latency_ms);
        reached(Step::Classified);
        let labels =
            [("class", self.running.name().to_owned()), ("outcome", verdict.outcome.as_str().to_owned())];
        metrics::counter!("paceline_attempts_total", &labels).increment(1);
        metrics::histogram!("paceline_attempt_seconds", "class" => self.running.name().to_owned())
            .record(sent.latency_ms as f64 / 1000.0);
        if let Outcome::Unknown { code, .. } = &verdict.outcome {
            tracing::error!(
                class = self.running.name(),
                code,
                snippet = verdict.snippet,
                "an answer that is not in the vocabulary"
            );
        }
        self.end(&ready.claimed.key, ready.job, &verdict.outcome, attempt, ready.slot);
    }

    /// Nothing was sent and nothing is counted.
    fn hand_back(&self, ready: Ready, reason: &'static str) -> Option<Ready> {
        let outcome = Outcome::NotSent { reason: reason.into() };
        self.end(&ready.claimed.key, ready.job, &outcome, Attempt::default(), ready.slot);
        None
    }

    fn end(&self, key: &str, job: Box<Job>, outcome: &Outcome, attempt: Attempt, slot: OwnedSemaphorePermit) {
        let seen = Seen { probe: self.lease.probe, hold: None };
        self.settler.settle(Ended {
            key: key.to_owned(),
            job,
            outcome: outcome.clone(),
            attempt,
            lease: self.lease,
            seen,
            kept: false,
            slot: Some(slot),
        });
    }
}

fn unanswered(phase: &'static str, error: &str) -> Answer {
    Answer::Unanswered { phase, error: error.to_owned() }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the transport panicked: {}", text.unwrap_or("without a message"))
}

fn attempt_of(verdict: &Verdict, latency_ms: u64) -> Attempt {
    let (message_id, retry_after_ms) = match &verdict.outcome {
        Outcome::Accepted { message_id } => (message_id.clone(), None),
        Outcome::Throttled { retry_after_ms, .. }
        | Outcome::QuotaSpent { retry_after_ms }
        | Outcome::Transient { retry_after_ms, .. }
        | Outcome::Ambiguous { retry_after_ms, .. }
        | Outcome::Unknown { retry_after_ms, .. } => (None, *retry_after_ms),
        _ => (None, None),
    };
    Attempt {
        code: verdict.code.clone(),
        rule: verdict.rule.clone(),
        latency_ms: Some(latency_ms),
        message_id,
        retry_after_ms,
        snippet: verdict.snippet.clone(),
        ..Attempt::default()
    }
}

/// The decision for an end, with the history it leads to: what settle carries out.
pub(crate) fn settlement(running: &Running, ended: &Ended) -> Settlement {
    let now_ms = ended.lease.now_ms();
    let policy = &running.lane.class.policy;
    let decision = decide(&ended.job, &ended.outcome, policy, ended.seen, now_ms, draws());
    let mut history = ended.job.history.clone();
    let made_none = matches!(ended.outcome, Outcome::NotSent { .. }) && !ended.outcome.is_lapse();
    if !made_none {
        history.push(Attempt {
            at_ms: now_ms,
            outcome: ended.outcome.as_str().to_owned(),
            reason: reason(&ended.outcome, &decision),
            ..ended.attempt.clone()
        });
    }
    let history = if decision.target == State::Submitted { history.to_receipt() } else { history.to_lines() };
    Settlement {
        key: ended.key.clone(),
        birth: ended.job.birth,
        deadline_ms: ended.lease.deadline_ms,
        claimed_ms: ended.lease.redis_now_ms,
        probed: ended.seen.probe.is_some(),
        count: format!("{}|{}", ended.attempt.code, ended.outcome.as_str()),
        decided_again: ended.seen.hold.is_some(),
        decision,
        history,
    }
}

fn reason(outcome: &Outcome, decision: &Decision) -> String {
    if decision.reason.is_empty() { outcome.reason().to_owned() } else { decision.reason.to_string() }
}
