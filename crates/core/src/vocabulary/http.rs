//! The built-in HTTP table: status → outcome, with the sections of RFC 9110 where one settles it.

use super::facts::Facts;
use super::{ProviderRules, Verdict, wait};
use crate::answer::HttpAnswer;
use crate::outcome::{Outcome, Scope};

/// What a status means before headers and body are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Success,
    Throttled,
    AccountThrottled,
    QuotaSpent,
    /// Throttled with a `Retry-After`, transient without.
    Overloaded,
    Transient,
    Ambiguous,
    Terminal,
    SenderRefused,
    Unknown,
}

fn word(status: u16) -> Word {
    match status {
        // 206, 207, 208, 226 make no sense for a POST or carry mixed outcomes: without a success rule nobody
        // can tell, and sending again could double. Any other 2xx counts as 200 (§15).
        206 | 207 | 208 | 226 => Word::Ambiguous,
        200..=299 => Word::Success,
        // §15.4.4: processed, and the result is elsewhere. The others are a misconfigured destination.
        303 => Word::Ambiguous,
        300..=399 => Word::SenderRefused,
        401 | 407 | 511 => Word::SenderRefused,
        402 => Word::QuotaSpent,
        // §15.5.9, §15.5.20, RFC 8470 §5.2, RFC 4918 §11.3: not acted on; the same again later may do.
        408 | 417 | 421 | 423 | 425 | 507 => Word::Transient,
        429 => Word::Throttled,
        503 | 529 => Word::Overloaded,
        509 => Word::AccountThrottled,
        // 403 with evidence of a throttle in its headers never comes here.
        400 | 403..=405 | 406 | 410..=416 | 422 | 426 | 428 | 431 | 451 => Word::Terminal,
        501 | 505 | 506 | 508 | 510 => Word::Terminal,
        // 500, 502, 504 and every edge's invention (520–527, 530, 598, 599): the message may have gone out.
        500..=599 => Word::Ambiguous,
        // Bare 409 and 424, the private 4xx, 1xx as a final answer, anything out of range.
        _ => Word::Unknown,
    }
}

/// Turns the facts of an HTTP answer into a meaning.
pub(super) fn classify(answer: &HttpAnswer, rules: &ProviderRules, now_ms: u64) -> Verdict {
    let facts = Facts::http(answer);
    let code = rules.code(&answer.status.to_string(), &facts);
    if let Some(verdict) = rules.verdict(&facts, &code, || rules.message_id(&facts), now_ms) {
        return verdict;
    }
    let evidence = throttle_evidence(&facts, now_ms).filter(|_| answer.status == 403);
    let wait_ms = wait::default_ms(&facts, answer.status == 429 || evidence.is_some(), now_ms);
    let (outcome, rule) = match evidence {
        Some(evidence) => {
            let throttled = Outcome::Throttled { retry_after_ms: wait_ms, scope: Scope::Credential };
            (throttled, format!("403+{evidence}"))
        }
        None => meaning(answer.status, rules, &facts, &code, wait_ms),
    };
    Verdict::of_table(outcome, code, format!("http:{rule}"))
}

fn meaning(
    status: u16,
    rules: &ProviderRules,
    facts: &Facts<'_>,
    code: &str,
    retry_after_ms: Option<u64>,
) -> (Outcome, String) {
    let reason = || reason(status);
    let throttled = |scope| Outcome::Throttled { retry_after_ms, scope };
    let transient = || Outcome::Transient { reason: reason().into(), retry_after_ms };
    let outcome = match word(status) {
        Word::Success => return success(status, rules, facts),
        Word::Ambiguous if status < 300 && rules.success.is_some() => {
            return success(status, rules, facts);
        }
        Word::Throttled => throttled(Scope::Credential),
        Word::AccountThrottled => throttled(Scope::Account),
        Word::QuotaSpent => Outcome::QuotaSpent { retry_after_ms },
        Word::Overloaded if retry_after_ms.is_some() => {
            return (throttled(Scope::Credential), format!("{status}+retry-after"));
        }
        Word::Overloaded | Word::Transient => transient(),
        Word::Ambiguous => Outcome::Ambiguous { reason: reason().into(), retry_after_ms },
        Word::Terminal => Outcome::Terminal { reason: reason().into() },
        Word::SenderRefused => Outcome::SenderRefused { reason: reason().into() },
        Word::Unknown => Outcome::Unknown { code: code.to_owned(), retry_after_ms },
    };
    (outcome, status.to_string())
}

fn reason(status: u16) -> String {
    match status {
        300..=399 => format!("http {status}: redirects are not followed"),
        _ => format!("http {status}"),
    }
}

/// Some vendors answer "you are too fast" with 403 (failures 17); the headers tell it from "not allowed".
fn throttle_evidence(facts: &Facts<'_>, now_ms: u64) -> Option<&'static str> {
    if wait::asked_ms(facts, now_ms).is_some() {
        return Some("retry-after");
    }
    let spent = ["x-ratelimit-remaining", "ratelimit-remaining"];
    spent.iter().any(|name| facts.header(name) == Some("0")).then_some("remaining-0")
}

fn success(status: u16, rules: &ProviderRules, facts: &Facts<'_>) -> (Outcome, String) {
    if rules.success.as_ref().is_some_and(|success| !success.holds(facts)) {
        let reason = format!("http {status} without what the success rule asks for");
        return (Outcome::ambiguous(reason), format!("{status}-success"));
    }
    (Outcome::Accepted { message_id: rules.message_id(facts) }, status.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{Condition, Locator, Pointer};
    use super::*;
    use proptest::prelude::*;

    const NOW_MS: u64 = 1_796_000_000_000;

    fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
        HttpAnswer {
            status,
            headers: headers.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            body: body.into(),
            body_truncated: false,
        }
    }

    fn outcome(status: u16, headers: &[(&str, &str)]) -> Outcome {
        classify(&answer(status, headers, ""), &ProviderRules::default(), NOW_MS).outcome
    }

    /// The whole table, as an operator would read it.
    #[test]
    fn every_status_has_its_word() {
        let mut table = String::new();
        for status in 100..=599 {
            let bare = outcome(status, &[]).as_str();
            let waited = outcome(status, &[("retry-after", "7")]).as_str();
            let with = if bare == waited { String::new() } else { format!(", with Retry-After {waited}") };
            table.push_str(&format!("{status} {bare}{with}\n"));
        }
        insta::assert_snapshot!(table);
    }

    /// DESIGN's own rows, spelled out: the snapshot may be re-accepted by mistake, these may not.
    #[test]
    fn timing_is_never_filed_as_failure() {
        for status in [408, 421, 425, 429, 500, 502, 503, 504, 507, 520, 529] {
            assert!(
                !matches!(outcome(status, &[]), Outcome::Terminal { .. } | Outcome::SenderRefused { .. }),
                "{status}"
            );
        }
        for status in [400, 403, 404, 405, 410, 413, 414, 415, 422, 501, 505] {
            assert_eq!(outcome(status, &[]).as_str(), "terminal", "{status}");
        }
        for status in [301, 302, 307, 308, 401, 407, 511] {
            assert_eq!(outcome(status, &[]).as_str(), "sender_refused", "{status}");
        }
        assert_eq!(outcome(303, &[]).as_str(), "ambiguous");
        assert_eq!(outcome(402, &[]).as_str(), "quota_spent");
        assert_eq!(outcome(409, &[]).as_str(), "unknown");
    }

    /// failures 10: a wait is honoured on everything that is tried again, and ignored on the rest.
    #[test]
    fn a_wait_is_read_wherever_it_can_matter() {
        let asked = |status| match outcome(status, &[("retry-after", "120")]) {
            Outcome::Throttled { retry_after_ms, .. }
            | Outcome::Transient { retry_after_ms, .. }
            | Outcome::Ambiguous { retry_after_ms, .. } => retry_after_ms,
            _ => None,
        };
        for status in [429, 503, 529, 408, 500, 502] {
            assert_eq!(asked(status), Some(120_000), "{status}");
        }
        assert_eq!(outcome(503, &[("retry-after", "120")]).as_str(), "throttled");
        assert_eq!(outcome(400, &[("retry-after", "10")]).as_str(), "terminal");
        assert_eq!(outcome(202, &[("retry-after", "10")]).as_str(), "accepted");
        assert_eq!(asked(429), Some(120_000));
    }

    #[test]
    fn a_403_with_throttle_evidence_is_a_throttle_and_says_why() {
        let verdict =
            |headers: &[(&str, &str)]| classify(&answer(403, headers, ""), &ProviderRules::default(), NOW_MS);
        assert_eq!(verdict(&[("retry-after", "60")]).rule, "http:403+retry-after");
        assert_eq!(verdict(&[("x-ratelimit-remaining", "0")]).rule, "http:403+remaining-0");
        assert_eq!(verdict(&[("x-ratelimit-remaining", "4")]).outcome.as_str(), "terminal");
    }

    /// failures 13: a reset is consulted only where `Retry-After` is absent, and only of a throttle.
    #[test]
    fn a_reset_stands_in_for_a_wait_that_is_not_named() {
        let reset = ("x-ratelimit-reset", "9");
        let asked = |status, headers: &[(&str, &str)]| match outcome(status, headers) {
            Outcome::Throttled { retry_after_ms, .. } | Outcome::Ambiguous { retry_after_ms, .. } => {
                retry_after_ms
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(asked(429, &[reset]), Some(9_000));
        assert_eq!(asked(429, &[reset, ("retry-after", "2")]), Some(2_000));
        assert_eq!(asked(403, &[reset, ("x-ratelimit-remaining", "0")]), Some(9_000));
        assert_eq!(asked(500, &[reset]), None);
    }

    #[test]
    fn a_success_rule_is_asked_of_every_2xx() {
        let rules = ProviderRules::new(
            Some(Condition::body_is(Pointer::parse("/status").unwrap(), "0")),
            Some(Locator::parse("body:/id").unwrap()),
            Vec::new(),
        );
        let meaning = |body: &str| classify(&answer(200, &[], body), &rules, NOW_MS).outcome;
        assert_eq!(meaning(r#"{"status":0,"id":12}"#), Outcome::Accepted { message_id: Some("12".into()) });
        assert_eq!(meaning(r#"{"status":"0"}"#), Outcome::Accepted { message_id: None });
        for body in [r#"{"status":1}"#, "", "<html>maintenance</html>"] {
            assert_eq!(meaning(body).as_str(), "ambiguous", "{body}");
        }
    }

    proptest! {
        #[test]
        fn it_is_total(status in any::<u16>(), wait in "\\PC{0,20}", body in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut answer = answer(status, &[("retry-after", &wait)], "");
            answer.body = body;
            let verdict = classify(&answer, &ProviderRules::default(), NOW_MS);
            prop_assert!(verdict.rule.starts_with("http:"));
        }
    }
}
