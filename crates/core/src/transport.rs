//! How a job leaves: the contract between the worker and whatever speaks to the remote side.

use crate::answer::Answer;
use crate::request::Request;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// One job as a transport sees it: what to send, under which id, and how long it may take.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The idempotency key for the provider, the same on every attempt.
    pub send_id: String,
    /// Method, path, headers and body, checked.
    pub request: Request,
    /// The total time from now until a whole answer, connect included.
    pub deadline: Duration,
}

/// The future of [`Transport::send`].
pub type Answers<'a> = Pin<Box<dyn Future<Output = Vec<Answer>> + Send + 'a>>;

/// Speaks to the remote side and reports raw facts, never a verdict.
///
/// A transport makes one attempt: no retries of its own and no redirects followed. It must tell
/// [`Answer::NotSent`] (no byte left) from [`Answer::Unanswered`] (bytes may have left); in doubt it is
/// the second.
pub trait Transport: Send + Sync + 'static {
    /// How many jobs one call may carry; the worker never passes more.
    fn max_batch(&self) -> usize {
        1
    }

    /// Sends the jobs and returns one answer per job, in order.
    fn send<'a>(&'a self, jobs: &'a [Outgoing]) -> Answers<'a>;
}
