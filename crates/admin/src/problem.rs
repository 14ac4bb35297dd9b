//! Every refusal: an RFC 9457 problem. Turning one into a response has no side effects; the edge logs.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use paceline_core::Fault;
use paceline_store::StoreError;
use serde::Serialize;
use serde_json::{Map, Value};

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong, for the client.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    /// The last part of the type's URN; empty: `about:blank`.
    kind: &'static str,
    detail: String,
    field: Option<String>,
    retry_after_s: Option<u32>,
    /// How to authenticate, with a 401.
    challenge: Option<&'static str>,
    /// Extension members.
    more: Box<Map<String, Value>>,
    /// For the log only: it may name addresses and files.
    cause: Option<Box<str>>,
}

/// The cause of a problem, handed to the edge beside the response.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) Box<str>);

impl Problem {
    /// A problem that its status describes.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            kind: "",
            detail: detail.into(),
            field: None,
            retry_after_s: None,
            challenge: None,
            more: Box::default(),
            cause: None,
        }
    }

    /// 400 naming the field.
    pub(crate) fn invalid(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("{field} {problem}")).kind("invalid").field(field)
    }

    /// 404 naming what was asked for.
    pub(crate) fn missing(field: &str, problem: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, problem).field(field)
    }

    /// 413 naming the limit.
    pub(crate) fn body_too_large(max_body_bytes: usize) -> Self {
        let detail = format!("the body is larger than {max_body_bytes} bytes (admin.max_body_bytes)");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail).kind("too_large").field("body")
    }

    pub(crate) fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub(crate) fn retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    pub(crate) fn challenge(mut self, challenge: &'static str) -> Self {
        self.challenge = Some(challenge);
        self
    }

    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into().into_boxed_str());
        self
    }

    /// With an extension member.
    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).expect("answers have text keys only");
        self.more.insert(name.to_owned(), value);
        self
    }

    /// With every field of an object as an extension member.
    pub(crate) fn with_all(mut self, object: impl Serialize) -> Self {
        if let Ok(Value::Object(fields)) = serde_json::to_value(object) {
            self.more.extend(fields);
        }
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The field at fault.
    pub(crate) fn named(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// What the log may know and the client may not.
    pub(crate) fn take_cause(&mut self) -> Option<Cause> {
        self.cause.take().map(Cause)
    }

    fn body(&self) -> Value {
        let kind = match self.kind {
            "" => "about:blank".to_owned(),
            kind => format!("urn:paceline:problem:{kind}"),
        };
        let mut body = Map::clone(&self.more);
        body.insert("type".into(), kind.into());
        body.insert("title".into(), self.status.canonical_reason().unwrap_or("Error").into());
        body.insert("status".into(), self.status.as_u16().into());
        body.insert("detail".into(), self.detail.as_str().into());
        if let Some(field) = &self.field {
            body.insert("field".into(), field.as_str().into());
        }
        Value::Object(body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let content_type = [(header::CONTENT_TYPE, MEDIA_TYPE)];
        let mut response = (self.status, content_type, self.body().to_string()).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(Cause(cause));
        }
        response
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::invalid(&fault.field, fault.problem)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let cause = error.to_string();
        let problem = match &error {
            StoreError::Unavailable(_) => {
                let detail = "Redis is not available; repeat the same request later";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).kind("unavailable").retry_after_s(1)
            }
            StoreError::OutOfMemory => {
                let detail = "Redis is out of memory; repeat the same request later";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, detail).kind("out_of_memory").retry_after_s(5)
            }
            StoreError::Full { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, cause.clone()).kind("full").retry_after_s(5)
            }
            StoreError::Moving => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, cause.clone()).kind("moving").retry_after_s(1)
            }
            StoreError::UnknownClass | StoreError::Undeclared => {
                let detail = "the class is not declared in Redis yet; repeat the same request";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).kind("undeclared").retry_after_s(1)
            }
            StoreError::ForeignDeployment { .. } | StoreError::Misconfigured(_) | StoreError::Bug { .. } => {
                let detail = "the server cannot use Redis as it should; its log says why";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
            }
        };
        problem.cause(cause)
    }
}
