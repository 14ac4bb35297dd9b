//! Where requests come in: reads one, asks the provider, gives or withholds the answer.
//!
//! Sends are not an axum handler, because a handler always answers; hyper closes a connection without a byte
//! when its service fails, and that is how a request is left unanswered.

use crate::control;
use crate::provider::{Arrival, Ending, Moment, Provider, Verdict};
use crate::reply::Reply;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request};
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use paceline_core::text::bounded;
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tower::ServiceExt;

/// Everything under it is the sandbox's own; every other path is the remote API.
pub(crate) const CONTROL_PREFIX: &str = "/_sandbox";

/// Well above the largest document Paceline takes by default.
const MAX_BODY_BYTES: usize = 16 * 1_048_576;
const MAX_CREDENTIAL_BYTES: usize = 1_024;
const MAX_PAYLOAD_KEY_BYTES: usize = 255;

/// The connection ends here, without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the scenario leaves this request unanswered")]
pub(crate) struct Cut;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    started: Instant,
    provider: Mutex<Provider>,
}

impl Shared {
    pub(crate) fn new(provider: Provider) -> Self {
        Self { started: Instant::now(), provider: Mutex::new(provider) }
    }

    /// The provider, and the moment at which it was free: taken under the lock, so that its time never runs
    /// backwards. A panic in a test's thread must not silence the ledger, hence no poisoning.
    pub(crate) fn provider(&self) -> (MutexGuard<'_, Provider>, Moment) {
        let provider = self.provider.lock().unwrap_or_else(PoisonError::into_inner);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_us = u64::try_from(unix.as_micros()).unwrap_or(u64::MAX);
        (provider, Moment { since_start: self.started.elapsed(), unix_us })
    }
}

/// One connection's way in.
#[derive(Clone)]
pub(crate) struct Front {
    shared: Arc<Shared>,
    control: Router,
    stop: watch::Receiver<bool>,
}

impl Front {
    pub(crate) fn new(shared: Arc<Shared>, stop: watch::Receiver<bool>) -> Self {
        Self { control: control::router(Arc::clone(&shared)), shared, stop }
    }

    /// Answers one request, or fails so that the connection is cut.
    pub(crate) async fn answer(self, request: Request) -> Result<Response, Cut> {
        if request.uri().path().starts_with(CONTROL_PREFIX) {
            return self.control.oneshot(request).await.map_err(|never| match never {});
        }
        if !matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
            return Ok(wrong_method());
        }
        let (parts, body) = request.into_parts();
        // A body that breaks off never arrived; one that is too large is not read to its end. Neither is a
        // line in the ledger.
        let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
            return Ok(response(&Reply::refused(413, "payload_too_large")));
        };
        let verdict = self.verdict(&parts, &body);
        if !verdict.delay.is_zero() {
            tokio::time::sleep(verdict.delay).await;
        }
        match verdict.ending {
            Ending::Answer(reply) => Ok(response(&reply)),
            Ending::Cut => Err(Cut),
            Ending::Hang(hold) => {
                // A shutdown does not wait for those that wait for nothing.
                let _ = tokio::time::timeout(hold, stopped(self.stop)).await;
                Err(Cut)
            }
        }
    }

    fn verdict(&self, parts: &Parts, body: &[u8]) -> Verdict {
        let credential = credential(&parts.headers, &parts.uri);
        let payload_key = payload_key(body);
        let (mut provider, now) = self.shared.provider();
        let send_id = text(&parts.headers, &provider.scenario().idempotency_header);
        provider.receive(Arrival { send_id, credential, payload_key }, now)
    }
}

/// Ends when the sandbox stops, or is gone.
pub(crate) async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn wrong_method() -> Response {
    let mut response = response(&Reply::refused(405, "method_not_allowed"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, PUT, PATCH"));
    response
}

fn response(reply: &Reply) -> Response {
    let mut response = Response::new(Body::from(reply.body.clone()));
    *response.status_mut() = StatusCode::from_u16(reply.status).expect("the scenario's check bounds it");
    let kind = if reply.body.starts_with(['{', '[']) { "application/json" } else { "text/plain" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(text) = &reply.retry_after {
        let value = HeaderValue::from_str(text).expect("the scenario's check tried it");
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

/// Where credentials are found, in this order; a request without one shares the limit of all such requests.
fn credential(headers: &HeaderMap, uri: &Uri) -> String {
    #[derive(Deserialize)]
    struct Keyed {
        key: String,
    }
    let of_query = || Query::<Keyed>::try_from_uri(uri).ok().map(|Query(keyed)| keyed.key);
    text(headers, AUTHORIZATION.as_str())
        .or_else(|| text(headers, "x-api-key"))
        .or_else(of_query)
        .map_or_else(|| "anonymous".into(), |text| bounded(text.as_bytes(), MAX_CREDENTIAL_BYTES))
}

/// A header's value as text; an empty one equals none.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.as_bytes();
    (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned())
}

/// The string at `/key`, by which a push is found again; any other payload is fine as well.
fn payload_key(body: &[u8]) -> Option<String> {
    let payload: Value = serde_json::from_slice(body).ok()?;
    let key = payload.pointer("/key")?.as_str()?;
    Some(bounded(key.as_bytes(), MAX_PAYLOAD_KEY_BYTES))
}
