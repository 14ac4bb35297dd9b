//! How a credential is presented, and how it is kept out of everything that comes back.

mod echo;

pub(crate) use echo::Echo;

use crate::TransportError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::Request;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

/// How a credential is presented: [`paceline_core::config::Auth`] with each reference replaced by its secret.
#[derive(Debug, Clone)]
pub enum Credential {
    /// Not at all.
    None,
    /// `Authorization: Bearer …`
    Bearer(SecretString),
    /// `Authorization: Basic …`
    Basic {
        /// The user.
        user: String,
        /// The password; may be empty, as some providers take the key for the user.
        secret: SecretString,
    },
    /// A header of its own.
    Header {
        /// The header's name.
        name: String,
        /// Its value.
        secret: SecretString,
    },
    /// A query parameter.
    Query {
        /// The parameter's name.
        name: String,
        /// Its value.
        secret: SecretString,
    },
}

/// A credential in the form it takes on a request, checked once.
#[derive(Debug)]
pub(crate) enum Presentation {
    Nothing,
    /// The value is marked sensitive, so that neither `Debug` nor a header table of HTTP/2 keeps it.
    Header(HeaderName, HeaderValue),
    Query {
        name: String,
        secret: SecretString,
    },
}

impl Presentation {
    /// The form of `credential`, and what to look for where it may be echoed.
    pub(crate) fn of(credential: &Credential) -> Result<(Self, Echo), TransportError> {
        match credential {
            Credential::None => Ok((Self::Nothing, Echo::default())),
            Credential::Bearer(secret) => {
                let secret = present(secret)?;
                Ok((header(AUTHORIZATION, &format!("Bearer {secret}"))?, Echo::of(&[secret])))
            }
            Credential::Basic { user, secret } => basic(user, secret.expose_secret()),
            Credential::Header { name, secret } => {
                let secret = present(secret)?;
                Ok((header(header_name("auth_name", name)?, secret)?, Echo::of(&[secret])))
            }
            Credential::Query { name, secret } => {
                if name.is_empty() {
                    return Err(TransportError::SettingUnusable {
                        setting: "auth_name",
                        problem: "is empty",
                    });
                }
                let echo = Echo::of(&[present(secret)?]);
                Ok((Self::Query { name: name.clone(), secret: secret.clone() }, echo))
            }
        }
    }

    /// Puts the credential on a request, over whatever stood in its place.
    pub(crate) fn apply(&self, request: &mut Request) {
        match self {
            Self::Nothing => {}
            Self::Header(name, value) => {
                request.headers_mut().insert(name, value.clone());
            }
            Self::Query { name, secret } => {
                request.url_mut().query_pairs_mut().append_pair(name, secret.expose_secret());
            }
        }
    }
}

/// A header's name from a setting. The four that frame a message are refused: a secret or a send id in one of
/// them would hang or split the connection.
pub(crate) fn header_name(setting: &'static str, name: &str) -> Result<HeaderName, TransportError> {
    let unusable = |problem| TransportError::SettingUnusable { setting, problem };
    let known = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| unusable("is not a header name (RFC 9110 §5.1)"))?;
    match known.as_str() {
        "connection" | "content-length" | "host" | "transfer-encoding" => {
            Err(unusable("belongs to the connection"))
        }
        _ => Ok(known),
    }
}

/// An empty secret is a reference to nothing, not a credential.
fn present(secret: &SecretString) -> Result<&str, TransportError> {
    match secret.expose_secret() {
        "" => Err(TransportError::CredentialUnusable("is empty")),
        secret => Ok(secret),
    }
}

fn basic(user: &str, secret: &str) -> Result<(Presentation, Echo), TransportError> {
    // RFC 7617 §2: the first colon ends the user.
    if user.contains(':') {
        return Err(TransportError::SettingUnusable { setting: "auth_user", problem: "holds a colon" });
    }
    let encoded = BASE64_STANDARD.encode(format!("{user}:{secret}"));
    Ok((header(AUTHORIZATION, &format!("Basic {encoded}"))?, Echo::of(&[&encoded, secret])))
}

fn header(name: HeaderName, value: &str) -> Result<Presentation, TransportError> {
    let unusable = TransportError::CredentialUnusable("holds what a header cannot (RFC 9110 §5.5)");
    let mut value =
        HeaderValue::from_str(value).ok().filter(|value| value.as_bytes().is_ascii()).ok_or(unusable)?;
    value.set_sensitive(true);
    Ok(Presentation::Header(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(credential: Credential) -> String {
        Presentation::of(&credential).unwrap_err().to_string()
    }

    #[test]
    fn a_secret_that_cannot_be_presented_is_refused_without_being_named() {
        for secret in ["", "hidden\r\nx: 1", "hidden\0", "hidd\u{e9}n"] {
            let error = refused(Credential::Bearer(secret.into()));
            assert!(error.starts_with("the credential's secret") && !error.contains("hid"), "{error}");
            refused(Credential::Header { name: "x-key".into(), secret: secret.into() });
        }
        refused(Credential::Query { name: "key".into(), secret: "".into() });
    }

    #[test]
    fn a_name_that_cannot_carry_a_secret_is_refused() {
        for name in ["", "x key", "x\r\nkey", "Content-Length", "host"] {
            let error = refused(Credential::Header { name: name.into(), secret: "hidden".into() });
            assert!(error.starts_with("auth_name: "), "{error}");
        }
        assert!(refused(Credential::Basic { user: "a:b".into(), secret: "".into() }).contains("auth_user"));
        assert!(
            refused(Credential::Query { name: "".into(), secret: "hidden".into() }).contains("auth_name")
        );
    }

    #[test]
    fn no_form_of_a_credential_shows_its_secret() {
        let secret = || SecretString::from("hidden");
        for credential in [
            Credential::Bearer(secret()),
            Credential::Basic { user: "ada".into(), secret: secret() },
            Credential::Header { name: "x-key".into(), secret: secret() },
            Credential::Query { name: "key".into(), secret: secret() },
        ] {
            let shown = format!("{credential:?} {:?}", Presentation::of(&credential).unwrap());
            assert!(!shown.contains("hidden") && !shown.contains("YWRhOmhpZGRlbg"), "{shown}");
        }
    }
}
