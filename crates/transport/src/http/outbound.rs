//! From a job to a request: address, headers, send id, credential.

use super::HttpTransport;
use super::gate::Gate;
use paceline_core::Outgoing;
use paceline_core::request::address;
use reqwest::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use reqwest::{Method, Request};

impl HttpTransport {
    /// The request of `job`, or why it cannot be one; the door refuses such a job, this is the second lock.
    pub(super) fn outbound(&self, job: &Outgoing, gate: &Gate) -> Result<Request, String> {
        let form = &job.request;
        let url = address(&self.base_url, &form.path).map_err(|problem| format!("path {problem}"))?;
        let method = Method::from_bytes(form.method.as_bytes()).map_err(|_| "method is not a token")?;
        let mut request = Request::new(method, url);
        let headers = request.headers_mut();
        for (name, value) in &form.headers {
            headers.append(header_name(name)?, header_value(name, value)?);
        }
        if let Some(name) = &self.idempotency_header {
            headers.insert(name, header_value(name.as_str(), &job.send_id)?);
        }
        // The body is a stream; with its length it leaves as it would in one piece, not in chunks.
        headers.insert(CONTENT_LENGTH, HeaderValue::from(form.body.len()));
        *request.body_mut() = Some(gate.body(&form.body));
        self.presentation.apply(&mut request);
        Ok(request)
    }
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("header {name:?} is not a header name (RFC 9110 §5.1)"))
}

/// The value is left out of the complaint: it may be private.
fn header_value(name: &str, value: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(value)
        .ok()
        .filter(|value| value.as_bytes().is_ascii())
        .ok_or_else(|| format!("header {name:?} holds what a header cannot (RFC 9110 §5.5)"))
}
