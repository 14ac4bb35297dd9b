//! How a job leaves.
//!
//! A transport makes one attempt and reports what happened as raw facts ([`paceline_core::Answer`]); what the
//! facts mean is said elsewhere, by the vocabulary. What it must get right is narrower and harder: one request
//! on the wire per attempt, whatever breaks; an end within its deadlines; a true answer to "can anything have
//! left?"; and no secret in anything it returns.

mod credential;
mod http;

pub use credential::Credential;
pub use http::HttpTransport;

/// Why there is no transport, named by what to do about it. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Correct the secret itself.
    #[error("the credential's secret {0}")]
    CredentialUnusable(&'static str),
    /// Correct a setting of the provider or the credential.
    #[error("{setting}: {problem}")]
    SettingUnusable {
        /// The setting, as the operator wrote it.
        setting: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Mend the machine: usually it has no root certificates (the package `ca-certificates`).
    #[error("no HTTPS client can be made on this machine: {0}")]
    TrustMissing(String),
}
