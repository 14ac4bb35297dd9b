//! A rule of the vocabulary: which answers it knows, and what they mean. Data, from TOML or JSON alike.

use super::condition::Condition;
use super::facts::{Facts, Protocol};
use super::fields::{Fields, text};
use super::wait::Wait;
use crate::Fault;
use crate::outcome::{Outcome, SHUTDOWN, Scope, WORKER_LOST};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

const MAX_NAME_BYTES: usize = 60;
const MAX_REASON_BYTES: usize = 120;

/// One rule, compiled, together with the document it was written as.
///
/// ```toml
/// [[rule]]
/// name = "daily-quota"                  # unique within its layer; the job's record names it
/// when = { status = 429, body = { "/name" = "daily_quota_exceeded" } }   # a list: one of these holds
/// outcome = "quota_spent"               # accepted, throttled, quota_spent, transient, ambiguous, terminal,
///                                       # sender_refused, unknown
/// reason = "daily quota"                # in a few words; default: the name
/// scope = "account"                     # recipient, credential, account, endpoint, sender
/// wait = { header = "x-reset", unit = "epoch_s" }   # or body, or text, or "none"
/// max_spent = 3                         # deferred after so many attempts of any kind that spend
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    name: String,
    when: Vec<Condition>,
    means: Means,
    reason: String,
    scope: Option<Scope>,
    wait: Option<Wait>,
    max_spent: Option<u32>,
    document: Value,
}

/// The outcomes a rule may name: those that are something a remote side says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    Accepted,
    Throttled,
    QuotaSpent,
    Transient,
    Ambiguous,
    Terminal,
    SenderRefused,
    Unknown,
}

const WORDS: [(&str, Means); 8] = [
    ("accepted", Means::Accepted),
    ("throttled", Means::Throttled),
    ("quota_spent", Means::QuotaSpent),
    ("transient", Means::Transient),
    ("ambiguous", Means::Ambiguous),
    ("terminal", Means::Terminal),
    ("sender_refused", Means::SenderRefused),
    ("unknown", Means::Unknown),
];

impl Means {
    fn read(value: &Value) -> Result<Self, String> {
        let word = value.as_str().and_then(|word| WORDS.iter().find(|(known, _)| *known == word));
        let known = || WORDS.map(|(known, _)| known).join(", ");
        word.map(|(_, means)| *means).ok_or_else(|| format!("must be one of {}", known()))
    }

    fn as_str(self) -> &'static str {
        WORDS.iter().find(|(_, means)| *means == self).map_or("unknown", |(word, _)| word)
    }

    fn waits(self) -> bool {
        !matches!(self, Self::Accepted | Self::Terminal | Self::SenderRefused)
    }

    fn spends(self) -> bool {
        matches!(self, Self::Transient | Self::Ambiguous | Self::Unknown)
    }

    fn is_about_pace(self) -> bool {
        matches!(self, Self::Throttled | Self::QuotaSpent)
    }
}

impl Rule {
    /// Reads the rule that is called `path` in faults (`rule[3]`).
    pub fn read(path: &str, document: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(path, document)?;
        let name = fields.required("name", name)?;
        let when = match fields.take("when") {
            Some((path, value)) => conditions(&path, &value)?,
            None => return Err(Fault::new(fields.path("when"), "is missing")),
        };
        let means = fields.required("outcome", Means::read)?;
        let reason = fields.optional("reason", reason)?.unwrap_or_else(|| name.clone());
        let scope = fields.optional("scope", scope)?;
        let wait = fields.take("wait").map(|(path, value)| Wait::read(&path, &value)).transpose()?;
        let max_spent = fields.optional("max_spent", |value| {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            number
                .filter(|number| (1..=1_000).contains(number))
                .ok_or("must be a number from 1 to 1000".into())
        })?;
        let rule = Self { name, when, means, reason, scope, wait, max_spent, document: document.clone() };
        rule.check(&fields)?;
        fields.finish()?;
        Ok(rule)
    }

    /// A field that would be without effect was meant otherwise.
    fn check(&self, fields: &Fields) -> Result<(), Fault> {
        let refused = |key: &str, problem: &str| Err(Fault::new(fields.path(key), problem));
        if self.scope.is_some() && !self.means.is_about_pace() {
            return refused("scope", "is for outcome throttled and quota_spent only: who slows down");
        }
        if self.wait.is_some() && !self.means.waits() {
            return refused("wait", "is for outcomes that are tried again only");
        }
        if self.max_spent.is_some() && !self.means.spends() {
            return refused(
                "max_spent",
                "is for outcome transient, ambiguous and unknown only: others spend nothing",
            );
        }
        if self.when.iter().any(|when| when.protocol() == Protocol::Link) && self.means == Means::Accepted {
            return refused("outcome", "cannot be accepted: nobody answered");
        }
        Ok(())
    }

    /// Its name, unique within its layer.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says it is about, in a few words.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The word of the outcome it names.
    pub fn outcome(&self) -> &'static str {
        self.means.as_str()
    }

    /// Who a throttle or a spent quota is about; a throttle that does not say is about the credential.
    pub fn scope(&self) -> Option<Scope> {
        self.scope.or((self.means == Means::Throttled).then_some(Scope::Credential))
    }

    /// After how many attempts that spend a job with this answer is deferred.
    pub fn max_spent(&self) -> Option<u32> {
        self.max_spent
    }

    /// The rule as it was written.
    pub fn document(&self) -> &Value {
        &self.document
    }

    pub(super) fn knows(&self, facts: &Facts<'_>) -> bool {
        self.when.iter().any(|when| when.holds(facts))
    }

    /// The meaning of an answer this rule knows.
    pub(super) fn meaning(
        &self,
        facts: &Facts<'_>,
        code: &str,
        message_id: impl FnOnce() -> Option<String>,
        now_ms: u64,
    ) -> Outcome {
        let retry_after_ms = match &self.wait {
            _ if !self.means.waits() => None,
            Some(wait) => wait.find_ms(facts, now_ms),
            None => super::wait::default_ms(facts, self.means == Means::Throttled, now_ms),
        };
        let reason = || self.reason.clone().into();
        match self.means {
            Means::Accepted => Outcome::Accepted { message_id: message_id() },
            Means::Throttled => {
                Outcome::Throttled { retry_after_ms, scope: self.scope.unwrap_or(Scope::Credential) }
            }
            Means::QuotaSpent => Outcome::QuotaSpent { retry_after_ms },
            Means::Transient => Outcome::Transient { reason: reason(), retry_after_ms },
            Means::Ambiguous => Outcome::Ambiguous { reason: reason(), retry_after_ms },
            Means::Terminal => Outcome::Terminal { reason: reason() },
            Means::SenderRefused => Outcome::SenderRefused { reason: reason() },
            Means::Unknown => Outcome::Unknown { code: code.to_owned(), retry_after_ms },
        }
    }
}

/// One table, or a list of them of which one must hold.
fn conditions(path: &str, value: &Value) -> Result<Vec<Condition>, Fault> {
    match value {
        Value::Array(items) if items.is_empty() => Err(Fault::new(path, "must name at least one condition")),
        Value::Array(items) => {
            let read = |(index, item)| Condition::read(&format!("{path}[{index}]"), item);
            items.iter().enumerate().map(read).collect()
        }
        one => Ok(vec![Condition::read(path, one)?]),
    }
}

fn name(value: &Value) -> Result<String, String> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    let name = value.as_str().filter(|name| (1..=MAX_NAME_BYTES).contains(&name.len()));
    let name = name.filter(|name| name.bytes().all(allowed));
    name.map(str::to_owned).ok_or_else(|| format!("must be 1 to {MAX_NAME_BYTES} of a-z, 0-9, _ and -"))
}

fn reason(value: &Value) -> Result<String, String> {
    let reason = text(value)?;
    if [WORKER_LOST, SHUTDOWN].contains(&reason.as_str()) {
        return Err("is a word of our own for an attempt that a worker gave up".into());
    }
    if reason.len() > MAX_REASON_BYTES || reason.chars().any(char::is_control) {
        return Err(format!("must be at most {MAX_REASON_BYTES} bytes on one line"));
    }
    Ok(reason)
}

/// Endpoint and sender slow the credential's budget (a class may name another for them).
fn scope(value: &Value) -> Result<Scope, String> {
    match value.as_str() {
        Some("recipient") => Ok(Scope::Recipient),
        Some("credential" | "endpoint" | "sender") => Ok(Scope::Credential),
        Some("account") => Ok(Scope::Account),
        _ => Err("must be recipient, credential, account, endpoint or sender".into()),
    }
}

/// From any format, by way of its plain values: the same faults whatever it was written in.
impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Value::deserialize(deserializer)?;
        Self::read("rule", &document).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
