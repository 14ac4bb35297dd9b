//! Settings, read into types that cannot hold nonsense.
//!
//! The defaults are a commented file that ships in the binary ([`DEFAULTS`]); the operator's file and the
//! environment lie on top. Every fault is found in one pass, with its line and, for an unknown setting, the
//! nearest known one.

mod layers;
mod reader;
mod sections;

use crate::Name;
use crate::budget::Limits;
use crate::policy::Policy;
use crate::request::RequestForm;
use crate::vocabulary::ProviderRules;
use crate::window::Windows;
use reader::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use url::Url;
use uuid::Uuid;

/// The commented defaults, as they ship.
pub const DEFAULTS: &str = include_str!("../paceline.toml");

/// One fault: where it stands and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {setting}: {problem}")]
pub struct ConfigFault {
    /// `paceline.toml:12`, `environment`, `defaults:40`.
    pub origin: String,
    /// The setting's full name.
    pub setting: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// The whole configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Every key in Redis starts with this.
    pub namespace: Name,
    /// The deployment id, where the operator set one.
    pub deployment_id: Option<Uuid>,
    /// Redis.
    pub redis: RedisConfig,
    /// The API.
    pub admin: AdminConfig,
    /// What people are told.
    pub alerts: AlertsConfig,
    /// The loop.
    pub worker: WorkerConfig,
    /// The other companies.
    pub providers: BTreeMap<Name, Provider>,
    /// What credentials share.
    pub accounts: BTreeMap<Name, Limits>,
    /// Keys at providers.
    pub credentials: BTreeMap<Name, Credential>,
    /// The lines of jobs in use.
    pub classes: BTreeMap<Name, Class>,
    /// Tokens of the API.
    pub tokens: BTreeMap<Name, Token>,
}

/// Where Redis is and how patient a call is.
#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// Empty: start a private one.
    pub url: String,
    /// A call without an answer by then is repeated.
    pub response_timeout_ms: u64,
    /// What an acknowledged push survives.
    pub durability: Durability,
}

/// What an acknowledged push survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of Redis's process, but for its last second.
    Everysec,
    /// The end of Redis's process.
    Always,
    /// As a rule the loss of the node: push and claim wait a moment for one replica.
    Replica,
}

/// The API's door.
#[derive(Debug, Clone)]
pub struct AdminConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The largest request body.
    pub max_body_bytes: usize,
}

/// From where on a person is told.
#[derive(Debug, Clone)]
pub struct AlertsConfig {
    /// Throttled of what was sent in five minutes.
    pub throttle_share: f64,
    /// The age of the oldest job that is due.
    pub oldest_due_s: u64,
    /// The age of the oldest job that was tried and waits.
    pub oldest_pending_s: u64,
    /// Used of a quota.
    pub quota_share: f64,
    /// Where alerts are posted to; `None`: nowhere.
    pub webhook: Option<Url>,
    /// A standing alert is told again after so long.
    pub repeat_s: u64,
}

/// The loop's own times.
#[derive(Debug, Clone, Copy)]
pub struct WorkerConfig {
    /// Time to finish after SIGTERM.
    pub grace_ms: u64,
    /// A lease is a deadline plus this.
    pub lease_margin_ms: u64,
    /// The longest sleep of an idle worker.
    pub poll_ms: u64,
}

/// The other company.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The origin that jobs' paths are joined to.
    pub base_url: Url,
    /// The request form, under the class's and the job's.
    pub request: RequestForm,
    /// The header of the send id; `None`: it is not sent.
    pub idempotency_header: Option<String>,
    /// How long it recognises a send id; `None`: it does not deduplicate.
    pub dedup_window_ms: Option<u64>,
    /// How to read its answers.
    pub rules: ProviderRules,
    /// Until connected.
    pub connect_timeout_ms: u64,
    /// Until the answer's first byte.
    pub first_byte_timeout_ms: u64,
    /// The answer's body is read up to here.
    pub max_answer_bytes: usize,
}

/// One key at a provider, with its budget.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Where it belongs.
    pub provider: Name,
    /// What it shares.
    pub account: Option<Name>,
    /// How it is presented.
    pub auth: Auth,
    /// Its budget.
    pub limits: Limits,
}

/// How a credential is presented. The secret is a reference; only the transport sees what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Not at all.
    None,
    /// `Authorization: Bearer …`
    Bearer(SecretRef),
    /// `Authorization: Basic …`
    Basic {
        /// The user.
        user: String,
        /// The password.
        secret: SecretRef,
    },
    /// A header of its own.
    Header {
        /// The header's name.
        name: String,
        /// Its value.
        secret: SecretRef,
    },
    /// A query parameter.
    Query {
        /// The parameter's name.
        name: String,
        /// Its value.
        secret: SecretRef,
    },
}

/// Where a secret is found; never the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// In an environment variable.
    Env(String),
    /// In a file, without its trailing line break.
    File(String),
}

/// One named line of jobs.
#[derive(Debug, Clone)]
pub struct Class {
    /// Its name.
    pub name: Name,
    /// Its hash tag.
    pub group: Name,
    /// The credential its jobs leave with.
    pub credential: Name,
    /// Requests in flight at once per process.
    pub concurrency: usize,
    /// The total time of one attempt.
    pub deadline_ms: u64,
    /// Caps and patience.
    pub policy: Policy,
    /// The provider's request form with the class's on top.
    pub request: RequestForm,
    /// What it weighs where classes share a budget: its reserved part is this over the sum of all.
    pub share: u32,
    /// Where classes share a budget, those with higher numbers give way first.
    pub shed_order: u32,
    /// When it may send; `None`: always.
    pub windows: Option<Windows>,
    /// Above this many waiting jobs a push is refused; 0: no limit.
    pub max_waiting: u64,
    /// The largest document.
    pub max_document_bytes: usize,
    /// How long receipts are kept.
    pub receipt_retention_ms: u64,
    /// How long failed jobs are kept.
    pub failed_retention_ms: u64,
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks; sees no payloads.
    Viewer,
    /// Pushes and looks.
    Producer,
    /// Everything.
    Operator,
}

/// A token of the API.
#[derive(Debug, Clone)]
pub struct Token {
    /// What it may do.
    pub role: Role,
    /// Where it is found.
    pub secret: SecretRef,
}

/// What the configuration is read from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// The operator's file: its name for messages, and its text.
    pub file: Option<(&'a str, &'a str)>,
    /// The environment's variables.
    pub environment: &'a [(String, String)],
}

impl Config {
    /// Reads everything; every fault at once.
    pub fn read(sources: Sources<'_>) -> Result<Self, Vec<ConfigFault>> {
        let mut reader = Reader::new(sources);
        let config = sections::config(&mut reader);
        reader.finish(config)
    }

    /// A lease: the class's deadline plus the margin, in ms.
    pub fn lease_ms(&self, class: &Class) -> u64 {
        class.deadline_ms + self.worker.lease_margin_ms
    }

    /// The budgets a class spends from, the credential's first.
    pub fn budgets_of(&self, class: &Class) -> Vec<(Name, Limits)> {
        let credential = &self.credentials[&class.credential];
        let account = credential.account.as_ref().map(|name| (name.clone(), self.accounts[name].clone()));
        std::iter::once((class.credential.clone(), credential.limits.clone())).chain(account).collect()
    }

    /// The classes that spend from a budget of this name (a credential's or an account's).
    pub fn spenders<'a>(&'a self, budget: &'a Name) -> impl Iterator<Item = &'a Class> {
        self.classes.values().filter(move |class| {
            class.credential == *budget
                || self.credentials[&class.credential].account.as_ref() == Some(budget)
        })
    }

    /// The provider of a class.
    pub fn provider_of(&self, class: &Class) -> &Provider {
        &self.providers[&self.credentials[&class.credential].provider]
    }
}

/// Every setting there is, as `class.*.concurrency`; the test of `paceline.toml` reads it.
pub fn settings() -> BTreeSet<String> {
    let example = "[provider.x]\nbase_url=\"http://x\"\ndeduplicates=true\nheaders.x-h=\"1\"\n[credential.x]\nprovider=\"x\"\n\
                   [account.x]\n[class.x]\ncredential=\"x\"\nheaders.x-h=\"1\"\n[token.x]\nrole=\"viewer\"\nsecret=\"env:X\"\n";
    let mut reader = Reader::new(Sources { file: Some(("example", example)), environment: &[] });
    sections::config(&mut reader);
    reader.asked().clone()
}

#[cfg(test)]
mod tests;
