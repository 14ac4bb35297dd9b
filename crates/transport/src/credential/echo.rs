//! Remote sides echo credentials, in bodies, in headers and in error texts: `{"error":"bad key sk_live_…"}`.

use paceline_core::text;
use secrecy::{ExposeSecret, SecretString};
use url::form_urlencoded::byte_serialize;

/// A shorter piece of a secret says nothing, and masking it would garble ordinary words.
const SHORTEST: usize = 4;

/// The forms in which our credential may come back, longest first.
#[derive(Debug, Default)]
pub(crate) struct Echo(Vec<SecretString>);

impl Echo {
    pub(crate) fn of(secrets: &[&str]) -> Self {
        let mut forms: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        forms.retain(|form| form.len() >= SHORTEST);
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Self(forms.into_iter().map(SecretString::from).collect())
    }

    /// `bytes` with the credential masked. Where they were `cut`, the end may hold the head of a secret whose
    /// tail was never read: it goes too.
    pub(crate) fn masked(&self, bytes: Vec<u8>, cut: bool) -> Vec<u8> {
        let forms: Vec<&[u8]> = self.0.iter().map(|form| form.expose_secret().as_bytes()).collect();
        let mut bytes = text::masked(bytes, &forms);
        if cut {
            let split = forms.iter().map(|form| split_at_end(&bytes, form)).max().unwrap_or(0);
            bytes.truncate(bytes.len() - split);
        }
        bytes
    }

    /// The same as clean text of at most `max_bytes`; masked before it is bounded, so that no half is left.
    pub(crate) fn text(&self, bytes: &[u8], max_bytes: usize) -> String {
        text::bounded(&self.masked(bytes.to_vec(), false), max_bytes)
    }
}

/// As it is, as a form or a query writes it, and as JSON does (with and without `\/`).
fn forms(secret: &str) -> [String; 5] {
    let form: String = byte_serialize(secret.as_bytes()).collect();
    let query = form.replace('+', "%20");
    let json = secret.replace('\\', "\\\\").replace('"', "\\\"");
    let slashed = json.replace('/', "\\/");
    [secret.to_owned(), form, query, json, slashed]
}

/// How many of the last bytes are the head of `secret`.
fn split_at_end(bytes: &[u8], secret: &[u8]) -> usize {
    (SHORTEST..secret.len()).rev().find(|&head| bytes.ends_with(&secret[..head])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(secret: &str, bytes: &str, cut: bool) -> String {
        String::from_utf8(Echo::of(&[secret]).masked(bytes.into(), cut)).unwrap()
    }

    #[test]
    fn a_secret_is_masked_however_it_was_written() {
        for (secret, bytes) in [
            ("sk_live_1", "key sk_live_1."),
            ("a/b+c d=", "key a%2Fb%2Bc+d%3D."),
            ("a/b+c d=", "key a%2Fb%2Bc%20d%3D."),
            ("say \"it\"", "key say \\\"it\\\"."),
            ("abc/def", "key abc\\/def."),
        ] {
            assert_eq!(masked(secret, bytes, false), "key ***.", "{secret}");
        }
    }

    #[test]
    fn half_a_secret_at_a_cut_goes_too() {
        assert_eq!(masked("sk_live_1", "key sk_liv", true), "key ");
        assert_eq!(masked("sk_live_1", "key sk_liv", false), "key sk_liv");
        assert_eq!(masked("sk_live_1", "key sk_", true), "key sk_");
    }

    #[test]
    fn a_text_is_masked_before_it_is_bounded() {
        assert_eq!(Echo::of(&["sk_live_1"]).text(b"sk_live_1 is wrong", 8), "*** i…");
    }
}
