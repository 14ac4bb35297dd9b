//! A refusal as a page: what is wrong, and what to do about it.

use super::layout;
use super::parts::prose;
use crate::problem::Problem;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use paceline_store::StoreError;

/// What a page answers where it cannot be shown.
#[derive(Debug)]
pub(super) struct Fault(pub(super) Problem);

/// What a page answers.
pub(super) type Answer = Result<Response, Fault>;

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Fault {
    fn into_response(mut self) -> Response {
        let (status, cause) = (self.0.status(), self.0.take_cause());
        let title = title(status);
        let main = html! {
            section.notice {
                h1 { (title) }
                p.lead role="alert" { (sentence(self.0.detail())) }
                p { (prose(advice(status))) }
                p { a.button href="/" { "Overview" } }
            }
        };
        // What may pass by itself is asked for again by the script.
        let again = status == StatusCode::SERVICE_UNAVAILABLE;
        let mut response = (status, layout::bare(title, again, main)).into_response();
        if let Some(cause) = cause {
            response.extensions_mut().insert(cause);
        }
        response
    }
}

/// Problems are written to stand in JSON; here they are sentences.
pub(super) fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let dot = if detail.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{dot}", letters.as_str())
}

fn title(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 415 => "This cannot be read",
        401 => "Sign in first",
        403 => "This is not allowed",
        404 => "There is nothing here",
        405 => "Not this way",
        409 => "Too late for that",
        413 => "This is too large",
        429 | 503 | 507 => "Not right now",
        _ => "Something is wrong here",
    }
}

fn advice(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 413 | 415 => "Go back, change the field that is named, and send it again. Nothing was changed.",
        401 => "Your session is over, or your token was changed. Nothing was changed.",
        403 => "Nothing was changed. Ask for a token with the role that is needed.",
        404 => "It may have been forgotten after its retention, or the address is misspelt.",
        405 => "Open the page itself and use its buttons.",
        429 | 503 | 507 => {
            "Jobs are safe where they are. This page asks again by itself; `paceline doctor` looks at Redis."
        }
        _ => "Jobs are safe where they are. The log of this process names the cause.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_becomes_a_sentence() {
        assert_eq!(sentence("there is no such job"), "There is no such job.");
        assert_eq!(sentence("Done."), "Done.");
        assert_eq!(sentence(""), ".");
    }
}
