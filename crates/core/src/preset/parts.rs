//! The parts of a preset, as its file has them.

use crate::request::Encoding;
use serde::Deserialize;
use std::collections::BTreeMap;

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
    /// Headers for every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
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
