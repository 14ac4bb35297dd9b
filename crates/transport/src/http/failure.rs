//! What an error of the client says about the one question that matters: can anything have left?

use super::gate::Gate;
use crate::credential::Echo;
use paceline_core::Answer;
use std::error::Error;
use std::io;

/// Bound of an error's text.
pub(super) const MAX_BYTES: usize = 200;

pub(super) fn not_sent(phase: &'static str, error: String) -> Answer {
    Answer::NotSent { phase, error }
}

pub(super) fn unanswered(phase: &'static str, error: String) -> Answer {
    Answer::Unanswered { phase, error }
}

/// The answer for an error before the head of the response. The gate decides; the error only names the phase.
pub(super) fn read(error: reqwest::Error, gate: &Gate, echo: &Echo) -> Answer {
    // The URL may hold the credential.
    let error = error.without_url();
    let text = echo.text(causes(&error).as_bytes(), MAX_BYTES);
    if is_refused_stream(&error) {
        return not_sent("refused_stream", text);
    }
    // The second half is for a body too empty to have a gate: hyper makes this error only before it hands the
    // request to a connection.
    if gate.withdraw() || error.is_connect() {
        return not_sent(unsent_phase(&error), text);
    }
    unanswered(if is_unreadable(&error) { "unreadable" } else { "reset" }, text)
}

/// The causes of an error in one line, outermost first, without those that only repeat the next.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut line = error.to_string();
    for cause in chain(error).skip(1) {
        let cause = cause.to_string();
        if !line.ends_with(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}

fn unsent_phase(error: &reqwest::Error) -> &'static str {
    if error.is_builder() {
        "request"
    } else if error.is_dns() {
        "dns"
    } else if chain(error).any(is_tls) {
        "tls"
    } else {
        "connect"
    }
}

/// An `io::Error` leaves the error it wraps out of its chain, and each layer wraps once more.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    cause.is::<rustls::Error>() || wrapped.is_some_and(|wrapped| is_tls(wrapped))
}

/// The peer says that it did not process the request: REFUSED_STREAM (RFC 9113 §8.7), or a graceful GOAWAY, which
/// fails exactly the streams above the last one processed (§6.8). A GOAWAY with a complaint proves less: servers
/// are careless with its stream id.
fn is_refused_stream(error: &reqwest::Error) -> bool {
    chain(error).filter_map(|cause| cause.downcast_ref::<h2::Error>()).any(|cause| {
        let refused = cause.is_reset() && cause.reason() == Some(h2::Reason::REFUSED_STREAM);
        let leaving = cause.is_go_away() && cause.reason() == Some(h2::Reason::NO_ERROR);
        cause.is_remote() && (refused || leaving)
    })
}

/// Something came that is no HTTP answer.
fn is_unreadable(error: &reqwest::Error) -> bool {
    chain(error).filter_map(|cause| cause.downcast_ref::<hyper::Error>()).any(hyper::Error::is_parse)
}

fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let outermost: &(dyn Error + 'static) = error;
    std::iter::successors(Some(outermost), |&cause| cause.source())
}
