//! Presets: what is documented of fifteen vendors, one TOML file each, compiled in. What is not known says so.

mod parts;
mod runbook;

use crate::request::RequestForm;
use crate::vocabulary::{Condition, Layer, Locator, Origin, ProviderRules, Rule};
use crate::{Fault, vocabulary};
pub use parts::{Advice, Auth, AuthKind, Idempotency, Known, Limit, Request, Unknown};
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
            headers: self.request.headers.clone(),
            encoding: Some(self.request.encoding),
        }
    }

    /// How long it recognises a send id, in ms; none where it does not, or where that is unknown.
    pub fn dedup_window_ms(&self) -> Option<u64> {
        let window_s = self.idempotency.window_s.as_ref()?.known()?;
        (self.idempotency.deduplicates == Known::Is(true)).then_some(window_s * 1_000)
    }

    /// The meaning of an answer by this preset alone, over the protocol table.
    pub fn classify(&self, answer: &crate::Answer, now_ms: u64) -> vocabulary::Verdict {
        vocabulary::classify(answer, &self.rules, now_ms)
    }
}

#[cfg(test)]
mod tests;
