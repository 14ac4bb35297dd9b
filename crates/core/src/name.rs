//! Names that are safe in a Redis key, a metric label and a URL.

use crate::Fault;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A name of a class, group, provider, credential, account or budget: `[a-z0-9_-]{1,40}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Refuses anything that is not `[a-z0-9_-]{1,40}`.
    pub fn new(text: &str) -> Result<Self, Fault> {
        let fits = (1..=40).contains(&text.len())
            && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(Fault::new("name", "must be 1 to 40 of a-z 0-9 _ -"))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = Fault;
    fn try_from(text: String) -> Result<Self, Fault> {
        Self::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The caller's key of a job, unique within its class: 1 to 200 bytes of UTF-8 without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobKey(String);

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 200;

impl JobKey {
    /// Refuses an empty key, one above [`MAX_KEY_BYTES`], and one with control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, Fault> {
        let text = text.into();
        if text.is_empty() {
            Err(Fault::new("key", "must not be empty; leave it out to get a UUIDv7"))
        } else if text.len() > MAX_KEY_BYTES {
            Err(Fault::new("key", format!("is {} bytes long; at most {MAX_KEY_BYTES}", text.len())))
        } else if text.chars().any(char::is_control) {
            Err(Fault::new("key", "must not hold control characters"))
        } else {
            Ok(Self(text))
        }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JobKey {
    type Error = Fault;
    fn try_from(text: String) -> Result<Self, Fault> {
        Self::new(text)
    }
}

impl From<JobKey> for String {
    fn from(key: JobKey) -> Self {
        key.0
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_in_a_redis_key() {
        assert!(Name::new("bulk-2_eu").is_ok());
        for bad in ["", "Bulk", "a b", "{x}", "a:b", &"x".repeat(41)] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_key_is_bounded_and_printable() {
        assert!(JobKey::new("welcome:42 ü").is_ok());
        for bad in ["", "a\nb", "a\u{0}", "\u{85}", &"x".repeat(201)] {
            assert_eq!(JobKey::new(bad).unwrap_err().field, "key", "{bad:?}");
        }
    }
}
