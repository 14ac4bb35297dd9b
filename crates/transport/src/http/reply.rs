//! From a response to an answer: bounded, clean, without our credential.

use super::failure::{self, unanswered};
use crate::credential::Echo;
use paceline_core::Answer;
use paceline_core::answer::HttpAnswer;
use reqwest::Response;
use std::pin::Pin;
use tokio::time::Sleep;

const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 1_000;

/// How the body ended.
enum End {
    Whole,
    /// By our cap.
    Cut,
    /// By the peer, or by the deadline.
    Broken(String),
}

/// Reads the body of `response`, up to `max_bytes` and no longer than `late`.
///
/// A body that breaks off leaves the answer unknown: its success rule or message id may have been in the rest,
/// so nobody can tell. Not so from 400 upwards. There the status is a refusal by itself, and a throttle whose
/// body never ends must not be filed as ambiguous: it is reported with what was read, as if the cap had cut it.
pub(super) async fn read(
    mut response: Response,
    echo: &Echo,
    max_bytes: usize,
    late: Pin<&mut Sleep>,
) -> Answer {
    let status = response.status().as_u16();
    let headers = headers(&response, echo);
    let (body, end) = body(&mut response, max_bytes, late).await;
    let body_truncated = match end {
        End::Whole => false,
        End::Cut => true,
        End::Broken(_) if status >= 400 => true,
        End::Broken(problem) => {
            let text = format!("status {status}, then {problem}");
            return unanswered("body", echo.text(text.as_bytes(), failure::MAX_BYTES));
        }
    };
    // An unfinished response takes its connection with it as it is dropped here.
    Answer::Http(HttpAnswer { status, headers, body: echo.masked(body, body_truncated), body_truncated })
}

fn headers(response: &Response, echo: &Echo) -> Vec<(String, String)> {
    let all = response.headers().iter().take(MAX_HEADERS);
    all.map(|(name, value)| (name.as_str().to_owned(), echo.text(value.as_bytes(), MAX_HEADER_BYTES)))
        .collect()
}

async fn body(response: &mut Response, max_bytes: usize, mut late: Pin<&mut Sleep>) -> (Vec<u8>, End) {
    let mut body = Vec::new();
    loop {
        let chunk = tokio::select! {
            biased;
            chunk = response.chunk() => chunk,
            () = late.as_mut() => return (body, End::Broken("the attempt's deadline passed".into())),
        };
        match chunk {
            Ok(None) => return (body, End::Whole),
            Ok(Some(chunk)) => {
                let room = max_bytes - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    return (body, End::Cut);
                }
            }
            Err(error) => return (body, End::Broken(failure::causes(&error.without_url()))),
        }
    }
}
