//! Request bodies, read by the piece, with their limit.

use crate::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError};
use std::error::Error;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON text.
    Json,
    /// One JSON text per line.
    Ndjson,
}

impl Form {
    /// What the content type says, or 415.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let given = headers.get(header::CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or(""));
        match given.split(';').next().unwrap_or("").trim().to_ascii_lowercase().as_str() {
            "application/json" => Ok(Self::Json),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(Self::Ndjson),
            _ => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "content-type must be application/json (for jobs also application/x-ndjson)",
            )
            .field("content-type")),
        }
    }
}

/// A body that is being read.
pub(crate) struct Incoming {
    body: Body,
    max_body_bytes: usize,
}

impl Incoming {
    /// `max_body_bytes` is for the message; the edge enforces it.
    pub(crate) fn new(body: Body, max_body_bytes: usize) -> Self {
        Self { body, max_body_bytes }
    }

    /// The next piece.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// All of it.
    pub(crate) async fn whole(mut self) -> Result<BytesMut, Problem> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    fn broken(&self, error: &axum::Error) -> Problem {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if error.is::<LengthLimitError>() {
                return Problem::body_too_large(self.max_body_bytes);
            }
            cause = error.source();
        }
        Problem::invalid("body", "broke off before its end")
    }
}
