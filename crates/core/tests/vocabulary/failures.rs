//! What users of other queues met in the classification of answers, where the corpus does not hold it already:
//! cases that a profile decides, and answers nobody foresaw.

use paceline_core::answer::HttpAnswer;
use paceline_core::outcome::Scope;
use paceline_core::vocabulary::{Layer, Origin, ProviderRules, Verdict, classify};
use paceline_core::{Answer, Outcome, preset};
use proptest::prelude::*;

const NOW_MS: u64 = 1_796_115_600_000;

fn http(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Answer::Http(HttpAnswer { status, headers, body: body.into(), body_truncated: false })
}

/// A vendor's preset with the operator's live rules over it.
fn taught(vendor: &str, live: &str) -> ProviderRules {
    let mut rules = preset::named(vendor).expect("the preset is there").rules().clone();
    rules.put(Layer::from_toml(Origin::Operator, live).expect("the rules are right"));
    rules
}

fn verdict(rules: &ProviderRules, answer: &Answer) -> Verdict {
    classify(answer, rules, NOW_MS)
}

/// failures 22: the words for 408 in the body of a 400; a profile decides.
#[test]
fn words_in_a_body_count_where_a_profile_says_so() {
    let mut rules = ProviderRules::default();
    let timeout = http(400, &[], "Request Timeout");
    assert_eq!(verdict(&rules, &timeout).outcome.as_str(), "terminal");
    let text = "[[rule]]\nname = \"timeout\"\nwhen = { status = 400, text = \"request timeout\" }\noutcome = \"transient\"";
    rules.put(Layer::from_toml(Origin::File, text).unwrap());
    assert_eq!(verdict(&rules, &timeout).outcome.as_str(), "transient");
    assert_eq!(verdict(&rules, &timeout).rule, "file:timeout");
}

/// failures 17: a profile may tell a throttle from a permission by the body; the reason says which rule fired.
#[test]
fn an_operator_teaches_a_403_that_is_a_throttle() {
    let live = r#"[[rule]]
        name = "too-fast"
        when = { status = 403, body = { "/errors/*/message" = { contains = "too fast" } } }
        outcome = "throttled"
        scope = "account""#;
    let rules = taught("sendgrid", live);
    let fast = verdict(&rules, &http(403, &[], r#"{"errors":[{"message":"You send too fast"}]}"#));
    assert_eq!(fast.outcome, Outcome::Throttled { retry_after_ms: None, scope: Scope::Account });
    assert_eq!(fast.rule, "operator:too-fast");
    let other = verdict(&rules, &http(403, &[], r#"{"errors":[{"message":"no"}]}"#));
    assert_eq!((other.outcome.as_str(), other.rule.as_str()), ("terminal", "http:403"));
}

/// failures 23: the same status, two opposite meanings, told apart by the body.
#[test]
fn a_conflict_is_repeated_or_final_as_its_body_says() {
    let rules = preset::named("resend").unwrap().rules();
    let conflict = |name: &str| verdict(rules, &http(409, &[], format!(r#"{{"name":"{name}"}}"#))).outcome;
    assert_eq!(conflict("concurrent_idempotent_requests").as_str(), "transient");
    assert_eq!(conflict("invalid_idempotent_request").as_str(), "terminal");
    assert_eq!(conflict("").as_str(), "unknown");
}

/// failures 25: where one request carried several and the answers are mixed, nothing is repeated blindly.
#[test]
fn a_mixed_answer_is_ambiguous() {
    let rules = preset::named("vonage_sms").unwrap().rules();
    let statuses = ["0", "0", "0", "1", "0", "0", "6", "0", "0", "0"];
    let parts: Vec<String> = statuses.iter().map(|status| format!(r#"{{"status":"{status}"}}"#)).collect();
    let mixed = http(200, &[], format!(r#"{{"messages":[{}]}}"#, parts.join(",")));
    assert_eq!(verdict(rules, &mixed).outcome.as_str(), "ambiguous");
}

/// failures 26: a login page that answers 200 is no acceptance, wherever a success rule is set.
#[test]
fn a_page_that_says_200_is_no_acceptance() {
    for preset in
        preset::all().iter().filter(|preset| !["apns", "aws_sns", "sendgrid"].contains(&&*preset.name))
    {
        let page = verdict(preset.rules(), &http(200, &[], "<html>Please log in</html>"));
        assert_eq!(page.outcome.as_str(), "ambiguous", "{}", preset.name);
    }
}

/// failures 88: bytes that are not UTF-8 are classified like others, and what is kept of them is clean.
#[test]
fn bytes_that_are_no_text_are_classified_all_the_same() {
    let rules = taught("postmark", "[[rule]]\nname = \"x\"\nwhen.text = \"wait\"\noutcome = \"transient\"");
    let odd = verdict(&rules, &http(422, &[], b"\xff\xfe{\"ErrorCode\":\x00 WAIT".to_vec()));
    assert_eq!(odd.rule, "operator:x");
    assert!(odd.snippet.chars().all(|c| !c.is_control()));
}

/// failures 91: what a provider says is bounded before anything is kept.
#[test]
fn codes_and_ids_are_bounded() {
    let long = "x".repeat(100_000);
    let rules = preset::named("resend").unwrap().rules();
    let refused = verdict(rules, &http(418, &[], format!(r#"{{"name":"{long}"}}"#)));
    assert!(refused.code.len() <= 70 && refused.snippet.len() <= 512, "{}", refused.code.len());
    let accepted = verdict(rules, &http(200, &[], format!(r#"{{"id":"{long}"}}"#)));
    let Outcome::Accepted { message_id: Some(id) } = accepted.outcome else { panic!("{accepted:?}") };
    assert!(id.len() <= 200);
}

/// Bodies that look like what vendors answer, with anything where a code may stand.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof!["[0-9]{1,6}", Just("null".to_owned()), Just("[]".into()), "\"\\PC{0,8}\""];
    let key = prop::sample::select(vec![
        "code",
        "error",
        "name",
        "messages",
        "status",
        "ErrorCode",
        "ok",
        "reason",
        "id",
    ]);
    let shaped = (key.clone(), key, value, any::<bool>()).prop_map(|(outer, inner, value, list)| {
        let inner = format!("{{\"{inner}\":{value}}}");
        let inner = if list { format!("[{inner},{inner}]") } else { inner };
        format!("{{\"{outer}\":{inner},\"{outer}x\":{value}}}").into_bytes()
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        shaped,
        "[\\[{]{0,300}".prop_map(String::into_bytes)
    ]
}

proptest! {
    /// Every answer has a meaning under every preset, and no acceptance is made up from nothing.
    #[test]
    fn classification_is_total(
        status in prop_oneof![any::<u16>(), 200u16..600],
        headers in prop::collection::vec(("retry-after|date|x-ratelimit-reset|x-amzn-errortype|apns-id", "\\PC{0,30}"), 0..3),
        body in bodies(),
    ) {
        let answer = Answer::Http(HttpAnswer { status, headers, body, body_truncated: false });
        for preset in preset::all() {
            let verdict = preset.classify(&answer, NOW_MS);
            prop_assert!(verdict.rule.starts_with("http:") || verdict.rule.starts_with("preset:"));
            if !(200..300).contains(&status) && preset.name != "infobip" {
                prop_assert_ne!(verdict.outcome.as_str(), "accepted", "{} {}", &preset.name, status);
            }
        }
    }
}
