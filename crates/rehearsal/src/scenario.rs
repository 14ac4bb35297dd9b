//! How the other company behaves, written so that a person can read it.

mod check;

use paceline_core::Fault;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The script of the sandbox. Every field has a default, so a scenario says only what differs:
///
/// ```toml
/// rate_per_s = 20.0
/// burst = 10
/// retry_after = "date"
/// retry_after_s = 3.0
/// unanswered_share = 0.01
/// limit_schedule = [{ at_s = 30.0, rate_per_s = 5.0 }]
///
/// [[errors]]
/// status = 500
/// share = 0.02
/// delivered = true
/// ```
///
/// A request meets, in this order: [`always`](Self::always), the check of its credential, the limit, and then
/// one draw that decides between a cut, a hang, one of the errors, and acceptance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// How many requests a second each credential may send, refilled continuously; 0: never any more.
    pub rate_per_s: f64,
    /// How many each may send at once.
    pub burst: u32,
    /// Later rates, in order, by the time since the start (or the last reset) of the sandbox.
    pub limit_schedule: Vec<LimitStep>,
    /// A throttled request costs a token too (down to a burst's worth below zero).
    pub refusals_consume: bool,
    /// A recognised repeat passes the limit like any other request.
    pub repeats_consume: bool,

    /// The status of a throttled request's answer.
    pub throttle_status: u16,
    /// How a throttled request is told when to come back.
    pub retry_after: RetryAfter,
    /// The wait that is told, in seconds.
    pub retry_after_s: f64,
    /// The header's text where `retry_after` is `"raw"`.
    pub retry_after_raw: String,

    /// From a request's arrival to its answer. What becomes of a request is settled as it arrives.
    pub latency_ms: u64,
    /// Up to so much more, evenly drawn.
    pub latency_jitter_ms: u64,

    /// The share of requests that are accepted, then cut off without a byte of an answer.
    pub unanswered_share: f64,
    /// The share of requests that are accepted, then left without an answer on an open connection.
    pub hang_share: f64,
    /// How long such a connection stays open.
    pub hang_ms: u64,
    /// What else may go wrong, each with its share of the requests.
    pub errors: Vec<ErrorAnswer>,
    /// Every request gets this, whatever its credential and the limit.
    pub always: Option<ErrorAnswer>,

    /// A repeat of a delivered send id gets the first acceptance again and is not delivered again.
    pub deduplicates: bool,
    /// The header that carries the send id.
    pub idempotency_header: String,
    /// Who may send, as the whole credential or without its scheme (`Bearer`); absent: everybody.
    pub accept_keys: Option<Vec<String>>,

    /// Of the draws: with the same seed the nth request meets the same fate.
    pub seed: u64,
}

/// How a throttled request is told when to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetryAfter {
    /// Whole seconds, rounded up.
    Seconds,
    /// Seconds with three decimals: outside the grammar, and seen in the wild.
    Decimal,
    /// An HTTP date, rounded up to its second.
    Date,
    /// The scenario's own text.
    Raw,
    /// Not at all.
    None,
}

/// A rate that holds from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitStep {
    /// Seconds since the sandbox started.
    pub at_s: f64,
    /// The rate from then on.
    pub rate_per_s: f64,
}

/// An answer that is no acceptance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorAnswer {
    /// Its status; 200 is one too, for a provider that reports failure in the body.
    pub status: u16,
    /// The share of requests that get it.
    #[serde(default = "whole")]
    pub share: f64,
    /// The text of its `Retry-After`.
    #[serde(default)]
    pub retry_after: Option<String>,
    /// Its body; by default a small JSON object.
    #[serde(default)]
    pub body: Option<String>,
    /// The message was delivered all the same.
    #[serde(default)]
    pub delivered: bool,
}

fn whole() -> f64 {
    1.0
}

impl ErrorAnswer {
    /// An undelivered message's answer with this status, for every request.
    pub fn new(status: u16) -> Self {
        Self { status, share: whole(), retry_after: None, body: None, delivered: false }
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            rate_per_s: 100.0,
            burst: 50,
            limit_schedule: Vec::new(),
            refusals_consume: false,
            repeats_consume: true,
            throttle_status: 429,
            retry_after: RetryAfter::Seconds,
            retry_after_s: 1.0,
            retry_after_raw: String::new(),
            latency_ms: 0,
            latency_jitter_ms: 0,
            unanswered_share: 0.0,
            hang_share: 0.0,
            hang_ms: 60_000,
            errors: Vec::new(),
            always: None,
            deduplicates: true,
            idempotency_header: "idempotency-key".into(),
            accept_keys: None,
            seed: 0,
        }
    }
}

impl Scenario {
    /// Refuses values that make no sense, naming the field.
    pub fn check(&self) -> Result<(), Fault> {
        check::check(self)
    }

    /// Reads and checks a scenario as an operator writes it.
    pub fn from_toml(text: &str) -> Result<Self, Fault> {
        let table: toml::Table =
            toml::from_str(text).map_err(|error| Fault::new("scenario", error.to_string().trim_end()))?;
        let patch = serde_json::to_value(table).map_err(|error| Fault::new("scenario", error.to_string()))?;
        // TOML has no null: it stands for a nan or inf, which JSON has no word for.
        match patch.as_object().into_iter().flatten().find(|(_, value)| value.is_null()) {
            Some((field, _)) => Err(Fault::new(field, "must be a finite number")),
            None => Self::default().patched(patch),
        }
    }

    /// This scenario with the fields of `patch` in place of its own (null: the default), checked as a whole.
    pub fn patched(&self, patch: Value) -> Result<Self, Fault> {
        let Value::Object(patch) = patch else {
            return Err(Fault::new("scenario", "must be an object of settings"));
        };
        let mut scenario = self.clone();
        for (field, value) in patch {
            scenario = scenario.with(&field, value)?;
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// One field at a time, because serde's complaint about a value does not name its field.
    fn with(&self, field: &str, value: Value) -> Result<Self, Fault> {
        let mut fields = self.fields();
        if value.is_null() {
            fields.remove(field);
        } else {
            fields.insert(field.to_owned(), value);
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| Fault::new(field, error.to_string()))
    }

    fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => unreachable!("a struct of plain values serializes as an object"),
        }
    }
}
