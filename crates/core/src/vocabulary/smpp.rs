//! The built-in SMPP table: `command_status` of a `submit_sm_resp` → outcome (SMPP 3.4 §5.1.3, 5.0 §4.7.6).

use super::facts::Facts;
use super::{ProviderRules, Verdict};
use crate::answer::SmppAnswer;
use crate::outcome::{Outcome, Scope};

/// Turns the facts of an SMPP answer into a meaning.
pub(super) fn classify(answer: &SmppAnswer, rules: &ProviderRules, now_ms: u64) -> Verdict {
    let code = format!("0x{:02X}", answer.status);
    let message_id = || answer.message_id.clone();
    let facts = Facts::smpp(answer);
    if let Some(verdict) = rules.verdict(&facts, &code, message_id, now_ms) {
        return verdict;
    }
    let rule = format!("smpp:{code}");
    Verdict::of_table(meaning(answer, &code), code, rule)
}

fn meaning(answer: &SmppAnswer, code: &str) -> Outcome {
    let reason = || format!("smpp {code}").into();
    match answer.status {
        // An OK without a body is still an acceptance: it has no id.
        0x00 => Outcome::Accepted { message_id: answer.message_id.clone() },
        0x58 => Outcome::Throttled { retry_after_ms: None, scope: Scope::Credential },
        // The queue that is full may be that of one destination; when several say it, it is the credential's.
        0x14 => Outcome::Throttled { retry_after_ms: None, scope: Scope::Recipient },
        // Not bound, already bound, the centre is down, the receiver's side for now, a service outage.
        0x04 | 0x05 | 0x08 | 0x64 | 0x102 => Outcome::Transient { reason: reason(), retry_after_ms: None },
        // Refused for what the bind is, not for what the message is.
        0x0D..=0x0F | 0x53 => Outcome::SenderRefused { reason: reason() },
        0x01..=0x03 | 0x06 | 0x07 | 0x0A..=0x0C | 0x11 | 0x13 | 0x15 => {
            Outcome::Terminal { reason: reason() }
        }
        0x33 | 0x34 | 0x40 | 0x42..=0x44 | 0x48 | 0x49 | 0x50 | 0x51 | 0x54 | 0x55 => {
            Outcome::Terminal { reason: reason() }
        }
        0x61..=0x63 | 0x65..=0x67 | 0xC0..=0xC4 => Outcome::Terminal { reason: reason() },
        0x100 | 0x101 | 0x103..=0x10C | 0x10E..=0x112 => Outcome::Terminal { reason: reason() },
        // 0x45, 0xFE, 0xFF and 0x10D say nothing; the rest is reserved, or the vendor's own (0x400–0x4FF).
        _ => Outcome::Unknown { code: code.to_owned(), retry_after_ms: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u32) -> &'static str {
        let answer = SmppAnswer { status, message_id: None };
        classify(&answer, &ProviderRules::default(), 0).outcome.as_str()
    }

    /// failures 31: what asks for a later repeat is never thrown away, and nothing is guessed.
    #[test]
    fn temporary_statuses_are_told_from_final_ones() {
        for (status, word) in [
            (0x00, "accepted"),
            (0x58, "throttled"),
            (0x14, "throttled"),
            (0x08, "transient"),
            (0x64, "transient"),
            (0x0B, "terminal"),
            (0x0A, "terminal"),
            (0x0E, "sender_refused"),
            (0x45, "unknown"),
            (0x400, "unknown"),
            (0x4FE, "unknown"),
            (u32::MAX, "unknown"),
        ] {
            assert_eq!(outcome(status), word, "{status:#x}");
        }
    }

    #[test]
    fn the_verdict_spells_the_status_as_the_books_do() {
        let verdict = classify(&SmppAnswer { status: 0x58, message_id: None }, &ProviderRules::default(), 0);
        assert_eq!((verdict.code.as_str(), verdict.rule.as_str()), ("0x58", "smpp:0x58"));
    }
}
