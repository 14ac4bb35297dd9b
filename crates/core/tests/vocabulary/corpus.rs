//! Reading the corpus and holding it against a table or preset.

use paceline_core::answer::{HttpAnswer, SmppAnswer};
use paceline_core::outcome::Scope;
use paceline_core::vocabulary::{ProviderRules, Verdict, classify, classify_smpp};
use paceline_core::{Answer, Outcome, preset};
use serde::Deserialize;
use std::collections::BTreeMap;

/// 2026-12-01T09:00:00Z.
const NOW_MS: u64 = 1_796_115_600_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Corpus {
    #[serde(rename = "answer")]
    pub(crate) answers: Vec<Expected>,
}

/// An answer, and what it must mean. Code, message id and cap are compared where they are written down.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    why: Option<String>,
    #[serde(default)]
    status: u32,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    kind: Option<String>,
    phase: Option<String>,
    error: Option<String>,
    outcome: String,
    scope: Option<String>,
    wait_ms: Option<u64>,
    max_spent: Option<u32>,
    code: Option<String>,
    message_id: Option<String>,
    pub(crate) rule: String,
}

/// What a corpus is held against.
pub(crate) enum Against {
    Http(ProviderRules),
    Smpp,
    Link,
}

impl Against {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "smpp" => Self::Smpp,
            "link" => Self::Link,
            "http" => Self::Http(ProviderRules::default()),
            vendor => {
                Self::Http(preset::named(vendor).expect("a corpus is named like its preset").rules().clone())
            }
        }
    }
}

impl Corpus {
    pub(crate) fn read(text: &str) -> Self {
        toml::from_str(text).expect("a corpus is TOML")
    }

    pub(crate) fn check(&self, against: Against) {
        for expected in &self.answers {
            let verdict = expected.verdict(&against);
            expected.check(&verdict);
        }
    }
}

impl Expected {
    fn verdict(&self, against: &Against) -> Verdict {
        let none = ProviderRules::default();
        match against {
            Against::Http(rules) => classify(&self.http(), rules, NOW_MS),
            Against::Link => classify(&self.broken(), &none, NOW_MS),
            Against::Smpp => {
                let answer = SmppAnswer { status: self.status, message_id: self.message_id.clone() };
                classify_smpp(&answer, &none, NOW_MS)
            }
        }
    }

    fn http(&self) -> Answer {
        Answer::Http(HttpAnswer {
            status: self.status.try_into().expect("an HTTP status is small"),
            headers: self.headers.clone().into_iter().collect(),
            body: self.body.clone().into_bytes(),
            body_truncated: false,
        })
    }

    fn broken(&self) -> Answer {
        let phase: &'static str = self.phase.clone().expect("a broken link has a phase").leak();
        let error = self.error.clone().unwrap_or_default();
        match self.kind.as_deref() {
            Some("not_sent") => Answer::NotSent { phase, error },
            _ => Answer::Unanswered { phase, error },
        }
    }

    fn check(&self, verdict: &Verdict) {
        let (wait_ms, message_id) = match &verdict.outcome {
            Outcome::Accepted { message_id } => (None, message_id.clone()),
            Outcome::Throttled { retry_after_ms, .. }
            | Outcome::QuotaSpent { retry_after_ms }
            | Outcome::Transient { retry_after_ms, .. }
            | Outcome::Ambiguous { retry_after_ms, .. }
            | Outcome::Unknown { retry_after_ms, .. } => (*retry_after_ms, None),
            _ => (None, None),
        };
        if let Outcome::Throttled { scope, .. } = verdict.outcome {
            assert_eq!(verdict.scope, Some(scope), "{verdict:?}");
        }
        let why = self.why.as_deref().unwrap_or_default();
        let told = format!("{why}\n{self:#?}\n{verdict:#?}");
        assert_eq!(verdict.outcome.as_str(), self.outcome, "{told}");
        assert_eq!(verdict.rule, self.rule, "{told}");
        assert_eq!(verdict.scope.map(word), self.scope.as_deref(), "{told}");
        assert_eq!(wait_ms, self.wait_ms, "{told}");
        assert_eq!(verdict.max_spent, self.max_spent, "{told}");
        assert_eq!(message_id, self.message_id, "{told}");
        assert!(self.code.as_ref().is_none_or(|code| *code == verdict.code), "{told}");
    }
}

fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Recipient => "recipient",
        Scope::Credential => "credential",
        Scope::Account => "account",
    }
}
