//! Bytes from the other side, made safe to keep: bounded, valid UTF-8, no control characters.

/// How much of an answer's body a job keeps per attempt, in bytes.
pub const SNIPPET_BYTES: usize = 512;

/// At most `max_bytes` of `bytes` as clean text: invalid sequences become U+FFFD, control characters
/// become blanks, and a cut falls on a character boundary and is marked with `…`.
pub fn bounded(bytes: &[u8], max_bytes: usize) -> String {
    // Four times the bound is enough input: no character of UTF-8 is longer than four bytes.
    let head = &bytes[..bytes.len().min(max_bytes.saturating_mul(4))];
    let text = String::from_utf8_lossy(head);
    let mut kept = String::with_capacity(max_bytes.min(text.len()));
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        if kept.len() + c.len_utf8() > max_bytes {
            return cut(kept, max_bytes);
        }
        kept.push(c);
    }
    if head.len() < bytes.len() { cut(kept, max_bytes) } else { kept }
}

fn cut(mut kept: String, max_bytes: usize) -> String {
    const MARK: char = '…';
    if max_bytes < MARK.len_utf8() {
        return kept;
    }
    while kept.len() + MARK.len_utf8() > max_bytes {
        kept.pop();
    }
    kept.push(MARK);
    kept
}

/// Replaces every occurrence of each of `secrets` in `bytes` by `***`; remote sides do echo credentials. One
/// pass per secret, whatever the body holds.
pub fn masked(bytes: Vec<u8>, secrets: &[&[u8]]) -> Vec<u8> {
    let long_enough = secrets.iter().filter(|secret| secret.len() >= 4);
    long_enough.fold(bytes, |bytes, secret| {
        let mut kept = Vec::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while let Some(at) = rest.windows(secret.len()).position(|window| window == *secret) {
            kept.extend_from_slice(&rest[..at]);
            kept.extend_from_slice(b"***");
            rest = &rest[at + secret.len()..];
        }
        kept.extend_from_slice(rest);
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_bytes_become_clean_text() {
        assert_eq!(bounded(b"Fehler: ung\xFCltig", 100), "Fehler: ung\u{FFFD}ltig");
        assert_eq!(bounded(b"a\0b\r\nc", 100), "a b  c");
        assert_eq!(bounded("😀😀".as_bytes(), 7), "😀…");
    }

    #[test]
    fn an_echoed_secret_is_masked() {
        assert_eq!(masked(b"bad key sk_live_1 (sk_live_1)".to_vec(), &[b"sk_live_1"]), b"bad key *** (***)");
    }

    proptest! {
        #[test]
        fn bounded_text_is_bounded(bytes in prop::collection::vec(any::<u8>(), 0..2000), max in 0usize..600) {
            let text = bounded(&bytes, max);
            prop_assert!(text.len() <= max);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
