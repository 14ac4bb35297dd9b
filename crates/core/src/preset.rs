//! Presets: what is documented of fifteen vendors, one TOML file each, compiled in. What is not known says so.

mod runbook;

use crate::request::{Encoding, RequestForm};
use crate::vocabulary::{Condition, Layer, Locator, Origin, ProviderRules, Rule};
use crate::{Fault, vocabulary};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;

const FILES: [(&str, &str); 15] = [
    ("apns", include_str!("../presets/apns.toml")),
    ("aws_ses_v2", include_str!("../presets/aws_ses_v2.toml")),
    ("aws_sns", include_str!("../presets/aws_sns.toml")),
    ("bird", include_str!("../presets/bird.toml")),
    ("fcm", include_str!("../presets/fcm.toml")),
    ("infobip", include_str!("../presets/infobip.toml")),
    ("mailgun", include_str!("../presets/mailgun.toml")),
    ("postmark", include_str!("../presets/postmark.toml")),
    ("resend", include_str!("../presets/resend.toml")),
    ("sendgrid", include_str!("../presets/sendgrid.toml")),
    ("sinch", include_str!("../presets/sinch.toml")),
    ("slack", include_str!("../presets/slack.toml")),
    ("twilio_messaging", include_str!("../presets/twilio_messaging.toml")),
    ("vonage_sms", include_str!("../presets/vonage_sms.toml")),
    ("whatsapp_cloud", include_str!("../presets/whatsapp_cloud.toml")),
];

static ALL: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| Preset::from_toml(name, text);
    FILES.iter().map(read).collect::<Result<_, _>>().expect("the presets are read by a test")
});

/// Every preset, by name.
pub fn all() -> &'static [Preset] {
    &ALL
}

/// The preset of that name: `sendgrid`.
pub fn named(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

/// What is documented of one vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// As the configuration names it: `sendgrid`.
    pub name: String,
    /// As people name it.
    pub title: String,
    /// What it carries: `email`, `sms`, `push`, `chat`.
    pub kind: String,
    /// Its authentication and body form are built, so jobs can leave by it. If not, it is vocabulary and runbook.
    pub sendable: bool,
    /// Where a request goes, and how it looks.
    pub request: Request,
    /// How the credential is presented.
    pub auth: Auth,
    /// What it does with a repeated send id.
    pub idempotency: Idempotency,
    /// The limits that are documented, each with its dimension and unit.
    pub limits: Vec<Limit>,
    /// What an operator wants to know at 3 a.m.
    pub advice: Advice,
    /// Where all this is from, and the kind of evidence.
    pub sources: Vec<String>,
    rules: ProviderRules,
}

/// A fact that may not be known; in a file, the value itself or `"unknown"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Known<T> {
    /// It is documented.
    Is(T),
    /// It was looked for and not found.
    Not(Unknown),
}

/// The word `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// Looked for, not found. Not "no".
    Unknown,
}

impl<T> Known<T> {
    /// The fact, where it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Is(fact) => Some(fact),
            Self::Not(_) => None,
        }
    }
}

/// Where a request goes, and how it looks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The origin; none where each account has its own.
    pub base_url: Option<String>,
    /// The method.
    pub method: String,
    /// The path; what stands in `{braces}` is yours to fill in.
    pub path: String,
    /// How the payload becomes a body.
    pub encoding: Encoding,
    /// What else matters.
    #[serde(default)]
    pub note: String,
}

/// How the credential is presented.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// The kind.
    pub kind: AuthKind,
    /// For basic: the user, where it is the same for everybody.
    pub user: Option<String>,
    /// For header and query: the name the secret goes under.
    pub name: Option<String>,
    /// What the secret is.
    pub secret: String,
}

/// The kinds of authentication that vendors want; the first four are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthKind {
    /// `Authorization: Bearer …`.
    Bearer,
    /// User and password.
    Basic,
    /// A header of its own.
    Header,
    /// A parameter of the query.
    Query,
    /// A signature over each request (AWS Signature Version 4).
    Sigv4,
    /// A short-lived token that is fetched with a service account's key.
    Oauth,
    /// A short-lived token that the sender signs itself.
    Jwt,
}

impl AuthKind {
    /// A transport can present it.
    pub const fn is_built(self) -> bool {
        matches!(self, Self::Bearer | Self::Basic | Self::Header | Self::Query)
    }
}

/// What the vendor does with a repeated send id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// A repeat under the same send id is recognised.
    pub deduplicates: Known<bool>,
    /// The header of the send id.
    pub header: Option<String>,
    /// How long it is recognised, in seconds.
    pub window_s: Option<Known<u64>>,
    /// A refusal is remembered like an acceptance, so a repeat needs another send id.
    pub caches_refusals: Known<bool>,
    /// What else matters.
    #[serde(default)]
    pub note: String,
}

/// One documented limit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// What it is counted over: `account`, `sender`, `recipient`, `endpoint`, …
    pub of: String,
    /// What is counted, and over which span: `segments/s`, `emails/24 h`.
    pub unit: String,
    /// The number in words, or `unknown`.
    pub value: String,
    /// The sustained rate as the configuration writes it, where it is a plain number.
    pub rate: Option<String>,
    /// The burst beside it.
    pub burst: Option<u32>,
}

/// What an operator wants to know at 3 a.m.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// What a throttle looks like, and whether the throttled request had an effect.
    pub throttle: String,
    /// What a timeout means.
    pub timeout: String,
    /// Burst against sustained.
    pub pace: String,
    /// What an acceptance does not say.
    pub accepted: String,
    /// What to set.
    pub set: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    kind: String,
    sendable: bool,
    sources: Vec<String>,
    request: Request,
    auth: Auth,
    success: Success,
    idempotency: Idempotency,
    limit: Vec<Limit>,
    advice: Advice,
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Success {
    when: Value,
    message_id: Option<String>,
    #[serde(default)]
    code: Vec<String>,
}

impl Preset {
    /// Reads one file; `name` is the preset's.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, Fault> {
        let file: File = toml::from_str(text).map_err(|error| Fault::new(name, error.to_string()))?;
        let locator = |field: &str, text: &String| {
            Locator::parse(text).map_err(|problem| Fault::new(format!("{name}.success.{field}"), problem))
        };
        let success = Condition::read(&format!("{name}.success.when"), &file.success.when)?;
        let message_id =
            file.success.message_id.as_ref().map(|text| locator("message_id", text)).transpose()?;
        let code = file.success.code.iter().map(|text| locator("code", text)).collect::<Result<_, _>>()?;
        let mut rules = ProviderRules::new(Some(success), message_id, code);
        rules.put(Layer::new(Origin::Preset(name.into()), file.rule)?);
        Ok(Self {
            name: name.into(),
            title: file.title,
            kind: file.kind,
            sendable: file.sendable,
            request: file.request,
            auth: file.auth,
            idempotency: file.idempotency,
            limits: file.limit,
            advice: file.advice,
            sources: file.sources,
            rules,
        })
    }

    /// How to read its answers: success rule, message id, code, and its layer of rules.
    pub fn rules(&self) -> &ProviderRules {
        &self.rules
    }

    /// Its layer of rules, to be put under the operator's.
    pub fn layer(&self) -> &Layer {
        &self.rules.layers()[0]
    }

    /// The request form that provider and class lay theirs over. A path with braces is left out: it must be filled in.
    pub fn form(&self) -> RequestForm {
        RequestForm {
            method: Some(self.request.method.clone()),
            path: Some(self.request.path.clone()).filter(|path| !path.contains('{')),
            encoding: Some(self.request.encoding),
            ..RequestForm::default()
        }
    }

    /// The meaning of an answer by this preset alone, over the protocol table.
    pub fn classify(&self, answer: &crate::Answer, now_ms: u64) -> vocabulary::Verdict {
        vocabulary::classify(answer, &self.rules, now_ms)
    }
}

#[cfg(test)]
mod tests;
