//! What became of one item, as it is answered.

use super::check::Refused;
use crate::problem::Problem;
use crate::time::rfc3339;
use axum::http::StatusCode;
use paceline_core::{Fault, State};
use paceline_store::Pushed;
use serde::Serialize;

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// It is new, and stored.
    Created,
    /// The same content was stored before.
    Duplicate,
    /// The key is taken by other content.
    Conflict,
    /// It was refused.
    Invalid,
    /// It is not known to be stored.
    Unavailable,
}

/// Which field is at fault, where one is, and why.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RowError {
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    problem: String,
}

/// One item's answer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// Its place in the array, or its line, from 0; a single job has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    pub(super) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    not_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RowError>,
    #[serde(skip)]
    is_too_large: bool,
}

impl Row {
    /// An item that passed the door; until Redis has it, it is `unavailable`.
    pub(super) fn open(index: usize, class: &str, key: &str, not_before_ms: Option<u64>) -> Self {
        let error = RowError { field: None, problem: "the request ended before it was stored".into() };
        Self {
            index: Some(index),
            class: Some(class.to_owned()),
            key: Some(key.to_owned()),
            status: Status::Unavailable,
            state: None,
            not_before: not_before_ms.map(rfc3339),
            error: Some(error),
            is_too_large: false,
        }
    }

    /// An item that was refused at the door.
    pub(super) fn refused(index: usize, refused: Refused) -> Self {
        let Fault { field, problem } = refused.fault;
        Self {
            index: Some(index),
            class: None,
            key: None,
            status: Status::Invalid,
            state: None,
            not_before: None,
            error: Some(RowError { field: Some(field), problem }),
            is_too_large: refused.is_too_large,
        }
    }

    /// Redis has answered.
    pub(super) fn settle(&mut self, pushed: Pushed) {
        self.error = None;
        (self.status, self.state) = match pushed {
            Pushed::Created => (Status::Created, None),
            Pushed::Duplicate(state) => (Status::Duplicate, Some(state)),
            Pushed::Conflict(state) => {
                self.fail(Some("key"), "is taken by a job with other content; nothing was changed");
                (Status::Conflict, Some(state))
            }
            Pushed::Invalid(field) => {
                self.fail(Some(&field), "was refused by the store");
                (Status::Invalid, None)
            }
        };
    }

    /// Why it is not stored.
    pub(super) fn fail(&mut self, field: Option<&str>, problem: impl Into<String>) {
        self.error = Some(RowError { field: field.map(str::to_owned), problem: problem.into() });
    }

    /// The class, for the count of pushes.
    pub(super) fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    /// Where the job can be looked at.
    pub(super) fn location(&self) -> String {
        let escape = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        };
        let key: String = self.key.iter().flat_map(|key| key.bytes()).map(escape).collect();
        format!("/v1/jobs/{}/{key}", self.class.as_deref().unwrap_or(""))
    }

    /// The problem of a single job that was refused.
    pub(super) fn into_refusal(self) -> Problem {
        let RowError { field, problem } = self.error.expect("what is invalid says why");
        let field = field.unwrap_or_default();
        match self.is_too_large {
            true => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("{field} {problem}"))
                .kind("too_large")
                .field(field),
            false => Problem::invalid(&field, problem),
        }
    }
}

/// Every item's answer, in order, and how many of each kind.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    results: Vec<Row>,
    created: usize,
    duplicate: usize,
    conflict: usize,
    invalid: usize,
    unavailable: usize,
}

impl Results {
    pub(super) fn of(results: Vec<Row>) -> Self {
        let count = |status| results.iter().filter(|row| row.status == status).count();
        Self {
            created: count(Status::Created),
            duplicate: count(Status::Duplicate),
            conflict: count(Status::Conflict),
            invalid: count(Status::Invalid),
            unavailable: count(Status::Unavailable),
            results,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_escapes_what_a_path_cannot_hold() {
        let row = Row::open(0, "bulk", "a/b c?ü", None);
        assert_eq!(row.location(), "/v1/jobs/bulk/a%2Fb%20c%3F%C3%BC");
    }
}
