//! One job, one HTTP request, one answer.

mod client;
mod failure;
mod gate;
mod outbound;
mod reply;
#[cfg(test)]
mod tests;

use crate::credential::{Echo, Presentation, header_name};
use crate::{Credential, TransportError};
use failure::{not_sent, unanswered};
use futures_util::future::join_all;
use gate::Gate;
use paceline_core::config::Provider;
use paceline_core::transport::Answers;
use paceline_core::{Answer, Outgoing, Transport};
use reqwest::header::HeaderName;
use reqwest::{Client, ClientBuilder, Request, Response, Url};
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep};

/// Speaks HTTP/1.1 and HTTP/2 to one provider with one credential.
///
/// | what happened | reported |
/// |---|---|
/// | the path, method or a header cannot be sent | `NotSent`, phase `request` |
/// | no connection, in its time or at all | `NotSent`, phase `dns`, `connect` or `tls` |
/// | the peer refused the HTTP/2 stream unprocessed | `NotSent`, phase `refused_stream` |
/// | the request began to leave, and no head of an answer came in its time | `Unanswered`, phase `first_byte` |
/// | … and the total time was over first | `Unanswered`, phase `deadline` |
/// | … and the connection broke | `Unanswered`, phase `reset` |
/// | … and the answer was not HTTP | `Unanswered`, phase `unreadable` |
/// | the head came, below 400, and the body broke or was late | `Unanswered`, phase `body` |
/// | anything else | `Http`, redirects included: none is followed |
///
/// Three clocks bound an attempt: until the request begins to leave, from there until the head of the answer is
/// complete, and the total. No layer beneath repeats a request.
#[derive(Debug)]
pub struct HttpTransport {
    client: Client,
    base_url: Url,
    idempotency_header: Option<HeaderName>,
    presentation: Presentation,
    echo: Echo,
    connect: Duration,
    first_byte: Duration,
    max_answer_bytes: usize,
}

impl HttpTransport {
    /// A transport for `provider` that presents `credential`.
    pub fn new(provider: &Provider, credential: Credential) -> Result<Self, TransportError> {
        Self::with(provider, &credential, |client| client)
    }

    fn with(
        provider: &Provider,
        credential: &Credential,
        adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, TransportError> {
        let (presentation, echo) = Presentation::of(credential)?;
        let idempotency_header = match &provider.idempotency_header {
            Some(name) => Some(header_name("idempotency_header", name)?),
            None => None,
        };
        Ok(Self {
            client: client::build(provider, adjust)?,
            base_url: provider.base_url.clone(),
            idempotency_header,
            presentation,
            echo,
            connect: Duration::from_millis(provider.connect_timeout_ms),
            first_byte: Duration::from_millis(provider.first_byte_timeout_ms),
            max_answer_bytes: provider.max_answer_bytes,
        })
    }

    async fn attempt(&self, job: &Outgoing) -> Answer {
        let gate = Gate::new(&job.request.body);
        let request = match self.outbound(job, &gate) {
            Ok(request) => request,
            Err(problem) => {
                return not_sent("request", self.echo.text(problem.as_bytes(), failure::MAX_BYTES));
            }
        };
        let mut late = pin!(sleep(job.deadline));
        // A pooled connection that the peer closed shows it once the runtime looks at its sockets. One look
        // before one is picked spares most requests that would be written into the close (failures 28).
        yield_now().await;
        match self.head(request, &gate, late.as_mut()).await {
            Ok(response) => reply::read(response, &self.echo, self.max_answer_bytes, late).await,
            Err(answer) => answer,
        }
    }

    /// The answer up to the end of its head. Whatever ends the wait drops the request and its connection.
    async fn head(&self, request: Request, gate: &Gate, late: Pin<&mut Sleep>) -> Result<Response, Answer> {
        tokio::select! {
            // An answer that is there counts, even if a clock ran out in the same moment.
            biased;
            result = self.client.execute(request) => {
                result.map_err(|error| failure::read(error, gate, &self.echo))
            }
            () = gate.withdrawn_after(self.connect) => {
                Err(not_sent("connect", format!("no connection within {} ms", self.connect.as_millis())))
            }
            () = gate.open_for(self.first_byte) => {
                let waited = self.first_byte.as_millis();
                Err(unanswered("first_byte", format!("no answer within {waited} ms of the request")))
            }
            () = late => Err(if gate.withdraw() {
                not_sent("connect", "no connection within the attempt's deadline".into())
            } else {
                unanswered("deadline", "no answer within the attempt's deadline".into())
            }),
        }
    }
}

impl Transport for HttpTransport {
    fn send<'a>(&'a self, jobs: &'a [Outgoing]) -> Answers<'a> {
        Box::pin(join_all(jobs.iter().map(|job| self.attempt(job))))
    }
}
