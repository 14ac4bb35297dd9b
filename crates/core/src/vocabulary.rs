//! What the remote side's answers mean: the vocabulary. Rules as data first, then a table per protocol.

mod condition;
mod facts;
mod fields;
mod http;
mod layer;
mod locator;
mod pointer;
mod predicate;
mod rule;
mod shape;
mod smpp;
mod wait;

use crate::answer::{Answer, HttpAnswer, SmppAnswer};
use crate::outcome::{Outcome, SHUTDOWN, Scope};
use crate::text;
pub use condition::Condition;
use facts::Facts;
pub use facts::{Protocol, TEXT_BYTES};
pub use layer::{Layer, Origin};
pub use locator::Locator;
pub use pointer::Pointer;
pub use predicate::Predicate;
pub use rule::Rule;
pub use shape::shape;
pub use wait::{Unit, Wait};

/// A provider's code is a word; more is cut.
const MAX_CODE_BYTES: usize = 60;

/// What an answer means, and which rule said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The meaning.
    pub outcome: Outcome,
    /// What the provider said, in its own code: `429`, `400/21211`, `timeout`, `connect`.
    pub code: String,
    /// The layer and rule that decided: `operator:slow`, `file:slow`, `preset:sendgrid:blocked`, `http:429`.
    pub rule: String,
    /// Why, in the rule's words; empty where the outcome says it all.
    pub reason: String,
    /// Who a throttle or a spent quota is about, where that is known.
    pub scope: Option<Scope>,
    /// A rule's own cap: a job with this answer is deferred after so many attempts that spend.
    pub max_spent: Option<u32>,
    /// The head of the body, bounded and clean.
    pub snippet: String,
}

impl Verdict {
    /// What a protocol's own table says.
    fn of_table(outcome: Outcome, code: String, rule: String) -> Self {
        let scope = match outcome {
            Outcome::Throttled { scope, .. } => Some(scope),
            _ => None,
        };
        let reason = outcome.reason().to_owned();
        Self { outcome, code, rule, reason, scope, max_spent: None, snippet: String::new() }
    }
}

/// How to read one provider's answers, compiled once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderRules {
    layers: Vec<Layer>,
    /// A 2xx that no rule knows is an acceptance only if this holds.
    pub success: Option<Condition>,
    /// Where the provider's id of the message is.
    pub message_id: Option<Locator>,
    /// Where the provider's own code is; the first of these that is there.
    pub code: Vec<Locator>,
}

impl ProviderRules {
    /// What an acceptance is, and where ids and codes are; no layer of rules yet.
    pub fn new(success: Option<Condition>, message_id: Option<Locator>, code: Vec<Locator>) -> Self {
        Self { layers: Vec::new(), success, message_id, code }
    }

    /// Puts a layer where it belongs, over one of the same origin; there is one preset.
    pub fn put(&mut self, layer: Layer) {
        let is_same = |origin: &Origin| match origin {
            Origin::Preset(_) => matches!(layer.origin(), Origin::Preset(_)),
            other => other == layer.origin(),
        };
        self.layers.retain(|old| !is_same(old.origin()));
        let at = self.layers.partition_point(|old| old.origin() < layer.origin());
        self.layers.insert(at, layer);
    }

    /// The layers, in the order they are asked.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// What the first rule that knows this answer says.
    fn verdict(
        &self,
        facts: &Facts<'_>,
        code: &str,
        message_id: impl FnOnce() -> Option<String>,
        now_ms: u64,
    ) -> Option<Verdict> {
        let mut found = self.layers.iter().filter_map(|layer| Some((layer, layer.first(facts)?)));
        let (layer, rule) = found.next()?;
        Some(Verdict {
            outcome: rule.meaning(facts, code, message_id, now_ms),
            code: code.to_owned(),
            rule: format!("{}:{}", layer.origin(), rule.name()),
            reason: rule.reason().to_owned(),
            scope: rule.scope(),
            max_spent: rule.max_spent(),
            snippet: String::new(),
        })
    }

    /// The status, with the provider's own code behind it: `400/21211`, or `200/0+1` where parts differ.
    fn code(&self, status: &str, facts: &Facts<'_>) -> String {
        let own = self.code.iter().find_map(|locator| locator.find_all(facts, MAX_CODE_BYTES));
        own.map_or_else(|| status.to_owned(), |own| format!("{status}/{own}"))
    }

    fn message_id(&self, facts: &Facts<'_>) -> Option<String> {
        self.message_id.as_ref()?.find(facts)
    }
}

/// Turns raw facts into a meaning. Total: every answer has one. `now_ms` measures a date in the answer
/// where the response has no `Date` of its own.
pub fn classify(answer: &Answer, rules: &ProviderRules, now_ms: u64) -> Verdict {
    match answer {
        Answer::Http(answer) => classify_http(answer, rules, now_ms),
        Answer::NotSent { phase, error } => {
            let outcome = Outcome::Transient { reason: (*phase).into(), retry_after_ms: None };
            broke("not_sent", phase, error, outcome, rules, now_ms)
        }
        Answer::Unanswered { phase, error } => {
            broke("unanswered", phase, error, Outcome::ambiguous(*phase), rules, now_ms)
        }
    }
}

/// As [`classify`], of an HTTP answer.
pub fn classify_http(answer: &HttpAnswer, rules: &ProviderRules, now_ms: u64) -> Verdict {
    let verdict = http::classify(answer, rules, now_ms);
    Verdict { snippet: text::bounded(&answer.body, text::SNIPPET_BYTES), ..verdict }
}

/// As [`classify`], of an SMPP answer.
pub fn classify_smpp(answer: &SmppAnswer, rules: &ProviderRules, now_ms: u64) -> Verdict {
    smpp::classify(answer, rules, now_ms)
}

fn broke(
    kind: &'static str,
    phase: &'static str,
    error: &str,
    outcome: Outcome,
    rules: &ProviderRules,
    now_ms: u64,
) -> Verdict {
    let facts = Facts::link(kind, phase, error);
    // A worker that ended is no word of the remote side: no rule may give it a meaning.
    let by_rule = if phase == SHUTDOWN { None } else { rules.verdict(&facts, phase, || None, now_ms) };
    let verdict = by_rule.unwrap_or_else(|| Verdict::of_table(outcome, phase.into(), format!("link:{kind}")));
    Verdict { snippet: text::bounded(error.as_bytes(), text::SNIPPET_BYTES), ..verdict }
}
