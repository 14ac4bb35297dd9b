//! What the remote side's answers mean: the vocabulary, protocol by protocol.

pub mod http;

use crate::answer::Answer;
use crate::outcome::Outcome;
use crate::text;

/// What an answer means, and which rule said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The meaning.
    pub outcome: Outcome,
    /// What the provider said, in its own code: `429`, `timeout`, `connect`.
    pub code: String,
    /// The rule that decided: `http:429`.
    pub rule: String,
    /// The head of the body, bounded and clean.
    pub snippet: String,
}

/// Where a provider puts a value in its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locator {
    /// A JSON pointer into the body (RFC 6901).
    Body(String),
    /// A header, by lower-case name.
    Header(String),
}

/// What the operator said of one provider's answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderRules {
    /// A 2xx is an acceptance only if the value at this JSON pointer equals the text.
    pub success: Option<(String, String)>,
    /// Where the provider's id of the message is.
    pub message_id: Option<Locator>,
}

/// Turns raw facts into a meaning. Total: every answer has one. `now_ms` measures a `Retry-After` date
/// where the response has no `Date` of its own.
pub fn classify(answer: &Answer, rules: &ProviderRules, now_ms: u64) -> Verdict {
    match answer {
        Answer::Http(answer) => http::classify(answer, rules, now_ms),
        Answer::NotSent { phase, error } => Verdict {
            outcome: Outcome::Transient { reason: (*phase).into(), retry_after_ms: None },
            code: (*phase).into(),
            rule: "link:not_sent".into(),
            snippet: text::bounded(error.as_bytes(), text::SNIPPET_BYTES),
        },
        Answer::Unanswered { phase, error } => Verdict {
            outcome: Outcome::ambiguous(*phase),
            code: (*phase).into(),
            rule: "link:unanswered".into(),
            snippet: text::bounded(error.as_bytes(), text::SNIPPET_BYTES),
        },
    }
}
