//! A job as it is shown.

use super::header::HeaderView;
use crate::time::rfc3339;
use paceline_core::config::Role;
use paceline_core::history::Attempt;
use paceline_core::job::Job;
use paceline_core::send_id::send_id;
use paceline_core::{JobKey, Name, State};
use paceline_store::{Record, Stored};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

/// A job, and where it is.
#[derive(Debug, Serialize)]
pub(crate) struct JobView {
    pub(crate) class: Name,
    pub(crate) key: JobKey,
    pub(crate) state: Option<State>,
    #[serde(flatten)]
    score: Score,
    /// Why the record cannot be read or sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(flatten)]
    pub(crate) job: Option<Known>,
    /// On request; `null` where the record cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<Option<HeaderView>>,
}

/// What the score of an index means depends on the state.
#[derive(Debug, Default, Serialize)]
struct Score {
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at_ms: Option<u64>,
}

impl Score {
    fn of(state: Option<State>, ms: u64) -> Self {
        let (at, at_ms) = (Some(rfc3339(ms)), Some(ms));
        let none = Self::default();
        match state {
            None => none,
            Some(state) if state.is_waiting() => {
                Self { next_attempt_at: at, next_attempt_at_ms: at_ms, ..none }
            }
            Some(State::InFlight) => Self { lease_until: at, lease_until_ms: at_ms, ..none },
            Some(_) => Self { settled_at: at, settled_at_ms: at_ms, ..none },
        }
    }
}

/// What a record says.
#[derive(Debug, Serialize)]
pub(crate) struct Known {
    pub(crate) send_id: Uuid,
    pub(crate) revision: u8,
    pub(crate) replays: u16,
    pub(crate) cost: u16,
    pub(crate) campaign: String,
    pub(crate) created_at: String,
    pub(crate) created_at_ms: u64,
    pub(crate) expires_at: Option<String>,
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) throttled_since: Option<String>,
    pub(crate) throttled_since_ms: Option<u64>,
    pub(crate) sent_since: Option<String>,
    pub(crate) sent_since_ms: Option<u64>,
    pub(crate) counters: Counters,
    pub(crate) flags: Flags,
    /// Oldest first.
    pub(crate) attempts: Vec<AttemptView>,
    /// As it was pushed, byte for byte; of a receipt nothing is left.
    pub(crate) document: Option<Box<RawValue>>,
    /// A document that is no JSON, made readable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) document_text: Option<String>,
    pub(crate) payload_hidden: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Counters {
    pub(crate) spent: u8,
    pub(crate) throttles: u16,
    pub(crate) lapses: u8,
    pub(crate) run_of_failures: u8,
    pub(crate) attempts: u16,
}

#[derive(Debug, Serialize)]
pub(crate) struct Flags {
    pub(crate) ambiguous: bool,
    pub(crate) started: bool,
    pub(crate) cancel: bool,
    pub(crate) late: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct AttemptView {
    pub(crate) at: String,
    #[serde(flatten)]
    pub(crate) attempt: Attempt,
}

impl JobView {
    pub(crate) fn of(class: &Name, key: &JobKey, stored: Stored, deployment: Uuid, role: Role) -> Self {
        let in_no_index = || "unindexed: the record is there and no index names it".to_owned();
        let problem = stored.record.problem().or_else(|| stored.state.is_none().then(in_no_index));
        let job = match stored.record {
            Record::Job(job) => Some(Known::of(*job, send_id_of(deployment, class, key), role)),
            _ => None,
        };
        Self {
            class: class.clone(),
            key: key.clone(),
            state: stored.state,
            score: Score::of(stored.state, stored.score_ms),
            problem,
            job,
            header: None,
        }
    }

    pub(crate) fn with_header(mut self, header: Option<Option<HeaderView>>) -> Self {
        self.header = header;
        self
    }
}

fn send_id_of<'a>(deployment: Uuid, class: &'a Name, key: &'a JobKey) -> impl Fn(u8) -> Uuid + 'a {
    move |revision| send_id(deployment, class, key, revision)
}

impl Known {
    fn of(job: Job, send_id: impl Fn(u8) -> Uuid, role: Role) -> Self {
        let payload_hidden = role == Role::Viewer;
        let (document, document_text) = document(&job.document, payload_hidden);
        Self {
            send_id: send_id(job.revision),
            revision: job.revision,
            replays: job.replays,
            cost: job.cost,
            created_at: rfc3339(job.created_at_ms),
            created_at_ms: job.created_at_ms,
            expires_at: job.expires_at_ms.map(rfc3339),
            expires_at_ms: job.expires_at_ms,
            throttled_since: job.throttled_since_ms.map(rfc3339),
            throttled_since_ms: job.throttled_since_ms,
            sent_since: job.sent_since_ms.map(rfc3339),
            sent_since_ms: job.sent_since_ms,
            counters: Counters {
                spent: job.counters.spent,
                throttles: job.counters.throttles,
                lapses: job.counters.lapses,
                run_of_failures: job.counters.run,
                attempts: job.counters.attempts,
            },
            flags: Flags {
                ambiguous: job.flags.ambiguous,
                started: job.flags.started,
                cancel: job.flags.cancel,
                late: job.flags.late,
            },
            attempts: job.history.attempts().iter().map(|one| attempt(one, payload_hidden)).collect(),
            campaign: job.campaign,
            document,
            document_text,
            payload_hidden,
        }
    }
}

/// The remote side's words may quote the payload, so a viewer does not see them either.
fn attempt(attempt: &Attempt, payload_hidden: bool) -> AttemptView {
    let mut attempt = attempt.clone();
    if payload_hidden {
        attempt.snippet.clear();
    }
    AttemptView { at: rfc3339(attempt.at_ms), attempt }
}

/// What a viewer sees of a document: fields that we know and that hold no words of the message.
const SHOWN: [&str; 6] = ["class", "key", "not_before", "expires_at", "cost", "tags"];

fn document(bytes: &[u8], payload_hidden: bool) -> (Option<Box<RawValue>>, Option<String>) {
    if bytes.is_empty() {
        return (None, None);
    }
    if payload_hidden {
        let fields: Map<String, Value> = serde_json::from_slice(bytes).unwrap_or_default();
        let shown: Map<String, Value> =
            fields.into_iter().filter(|(name, _)| SHOWN.contains(&name.as_str())).collect();
        return (serde_json::value::to_raw_value(&shown).ok(), None);
    }
    match serde_json::from_slice(bytes) {
        Ok(document) => (Some(document), None),
        Err(_) => (None, Some(String::from_utf8_lossy(bytes).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_sees_no_word_of_the_message() {
        let bytes =
            br#"{"class":"bulk","key":"k","payload":{"to":"ada"},"request":{"path":"/ada"},"note":"ada"}"#;
        let (shown, text) = document(bytes, true);
        assert_eq!((shown.unwrap().get(), text), (r#"{"class":"bulk","key":"k"}"#, None));
        let (whole, _) = document(bytes, false);
        assert_eq!(whole.unwrap().get().as_bytes(), bytes);
    }

    #[test]
    fn a_document_that_is_no_json_is_still_shown_as_text() {
        assert!(matches!(document(b"\xff{", false), (None, Some(text)) if text == "\u{fffd}{"));
        assert!(matches!(document(b"\xff{", true), (Some(shown), None) if shown.get() == "{}"));
    }
}
