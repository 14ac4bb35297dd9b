use super::*;
use crate::answer::{Answer, HttpAnswer};
use crate::vocabulary::{Layer, Origin, ProviderRules, Verdict, classify};
use proptest::prelude::*;
use serde_json::json;

const NOW_MS: u64 = 1_796_115_600_000;

fn toml_rules(text: &str) -> Layer {
    Layer::from_toml(Origin::Operator, text).unwrap()
}

fn fault(text: &str) -> String {
    Layer::from_toml(Origin::File, text).unwrap_err().to_string()
}

fn rules(layers: impl IntoIterator<Item = Layer>) -> ProviderRules {
    let mut rules = ProviderRules::default();
    layers.into_iter().for_each(|layer| rules.put(layer));
    rules
}

fn http(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Answer::Http(HttpAnswer { status, headers, body: body.into(), body_truncated: false })
}

fn one(rule: &str, answer: &Answer) -> Verdict {
    classify(answer, &rules([toml_rules(&format!("[[rule]]\n{rule}"))]), NOW_MS)
}

#[test]
fn a_rule_says_everything_a_verdict_holds() {
    let verdict = one(
        r#"name = "slow"
        when = { status = 400, body = { "/error/code" = [7, "E7"] } }
        outcome = "throttled"
        reason = "one message per second and number"
        scope = "recipient"
        wait = { body = "/error/wait", unit = "s" }"#,
        &http(400, &[], r#"{"error":{"code":"E7","wait":3}}"#),
    );
    assert_eq!(
        verdict,
        Verdict {
            outcome: Outcome::Throttled { retry_after_ms: Some(3_000), scope: Scope::Recipient },
            code: "400".into(),
            rule: "operator:slow".into(),
            reason: "one message per second and number".into(),
            scope: Some(Scope::Recipient),
            max_spent: None,
            snippet: r#"{"error":{"code":"E7","wait":3}}"#.into(),
        }
    );
}

#[test]
fn every_outcome_can_be_taught() {
    let at = |outcome: &str| {
        let rule = format!("name = \"x\"\nwhen.status = 418\noutcome = \"{outcome}\"\n");
        one(&rule, &http(418, &[("retry-after", "5")], "")).outcome
    };
    let (reason, retry_after_ms) = (std::borrow::Cow::from("x"), Some(5_000));
    assert_eq!(at("accepted"), Outcome::Accepted { message_id: None });
    assert_eq!(at("throttled"), Outcome::Throttled { retry_after_ms, scope: Scope::Credential });
    assert_eq!(at("quota_spent"), Outcome::QuotaSpent { retry_after_ms });
    assert_eq!(at("transient"), Outcome::Transient { reason: reason.clone(), retry_after_ms });
    assert_eq!(at("ambiguous"), Outcome::Ambiguous { reason: reason.clone(), retry_after_ms });
    assert_eq!(at("terminal"), Outcome::Terminal { reason: reason.clone() });
    assert_eq!(at("sender_refused"), Outcome::SenderRefused { reason });
    assert_eq!(at("unknown"), Outcome::Unknown { code: "418".into(), retry_after_ms });
}

#[test]
fn the_first_layer_that_knows_the_answer_wins() {
    let layer = |origin: Origin, outcome: &str, status: u16| {
        let text = format!("[[rule]]\nname = \"x\"\nwhen.status = {status}\noutcome = \"{outcome}\"\n");
        Layer::from_toml(origin, &text).unwrap()
    };
    let all = rules([
        layer(Origin::Preset("old".into()), "accepted", 400),
        layer(Origin::Preset("acme".into()), "terminal", 429),
        layer(Origin::Operator, "transient", 401),
        layer(Origin::File, "ambiguous", 402),
    ]);
    let fired = |status| classify(&http(status, &[], ""), &all, NOW_MS).rule;
    assert_eq!(fired(401), "operator:x");
    assert_eq!(fired(402), "file:x");
    assert_eq!(fired(429), "preset:acme:x");
    assert_eq!(fired(400), "http:400", "one preset takes the place of another");
    let mut all = all;
    all.put(layer(Origin::Operator, "transient", 429));
    assert_eq!(classify(&http(429, &[], ""), &all, NOW_MS).rule, "operator:x");
    assert_eq!(classify(&http(401, &[], ""), &all, NOW_MS).rule, "http:401", "live rules replace live rules");
}

#[test]
fn a_rule_may_cap_what_it_knows() {
    let rule = "name = \"locked\"\nwhen.status = 423\noutcome = \"transient\"\nmax_spent = 2";
    assert_eq!(one(rule, &http(423, &[], "")).max_spent, Some(2));
    assert_eq!(one(rule, &http(500, &[], "")).max_spent, None);
}

#[test]
fn one_of_several_conditions_is_enough() {
    let rule = r#"name = "slow"
        when = [{ header = { x-type = { contains = "Throttling" } } }, { status = 400, text = "<code>throttling" }]
        outcome = "throttled""#;
    assert_eq!(one(rule, &http(400, &[("x-type", "ThrottlingException:x")], "")).rule, "operator:slow");
    assert_eq!(one(rule, &http(400, &[], "<Error><Code>Throttling</Code></Error>")).rule, "operator:slow");
    assert_eq!(one(rule, &http(400, &[], "<Error/>")).rule, "http:400");
    let none = fault("[[rule]]\nname = \"x\"\nwhen = []\noutcome = \"terminal\"");
    assert_eq!(none, "rule[0].when: must name at least one condition");
    let odd = fault("[[rule]]\nname = \"x\"\nwhen = [{ status = 1 }, { text = 2 }]\noutcome = \"terminal\"");
    assert_eq!(odd, "rule[0].when[1].text: must be a text that is not blank");
}

#[test]
fn a_link_that_breaks_can_be_told_apart_but_not_our_own_end() {
    let rule =
        "name = \"tls\"\nwhen = { protocol = \"link\", status = \"tls\" }\noutcome = \"sender_refused\"";
    let tls = Answer::NotSent { phase: "tls", error: "certificate expired".into() };
    assert_eq!(one(rule, &tls).outcome.as_str(), "sender_refused");
    let connect = Answer::NotSent { phase: "connect", error: String::new() };
    assert_eq!(one(rule, &connect).rule, "link:not_sent");
    let any =
        "name = \"any\"\nwhen = { protocol = \"link\", status = \"unanswered\" }\noutcome = \"terminal\"";
    let ended = Answer::Unanswered { phase: SHUTDOWN, error: String::new() };
    assert!(one(any, &ended).outcome.is_cut_short());
}

#[test]
fn toml_and_json_read_alike_and_are_written_as_they_were_read() {
    let text = r#"
        [[rule]]
        name = "a"
        when = { header = { x = { exists = true } }, body = { "/n/*" = [1, true, "x"] }, status = ["4xx", 500] }
        outcome = "unknown"
        max_spent = 1
        wait = "none"
        [[rule]]
        name = "b"
        when.text = "slow"
        outcome = "throttled"
        scope = "endpoint""#;
    let layer = toml_rules(text);
    let json = serde_json::to_string(layer.rules()).unwrap();
    assert_eq!(Layer::from_json(Origin::Operator, &json).unwrap(), layer);
    assert_eq!(toml_rules(&layer.to_toml()), layer);
    let rule: Rule = serde_json::from_str(&serde_json::to_string(&layer.rules()[0]).unwrap()).unwrap();
    assert_eq!(rule, layer.rules()[0]);
    assert_eq!(toml_rules("").rules(), []);
}

/// A rule that can be read can be written: TOML has no whole number above 2^63.
#[test]
fn a_number_that_toml_cannot_hold_is_refused() {
    let rule =
        |number: u64| json!({ "name": "x", "when": { "body": { "/id": number } }, "outcome": "terminal" });
    let fault = Rule::read("rule", &rule(u64::MAX)).unwrap_err();
    assert_eq!(fault.to_string(), "rule.when.body.\"/id\": is too large for a number: write it as a text");
    assert!(Rule::read("rule", &rule(i64::MAX as u64)).is_ok());
}

#[test]
fn a_fault_names_its_rule_and_field() {
    let with = |extra: &str| {
        fault(&format!("[[rule]]\nname = \"x\"\nwhen.status = 418\noutcome = \"terminal\"\n{extra}"))
    };
    assert_eq!(fault("[[rule]]"), "rule[0].name: is missing");
    assert_eq!(fault("[[rule]]\nname = \"x\""), "rule[0].when: is missing");
    assert_eq!(fault("[[rule]]\nname = \"x\"\nwhen.status = 1"), "rule[0].outcome: is missing");
    assert!(fault("[[rule]]\nname = \"A b\"").starts_with("rule[0].name: must be 1 to 60 of"));
    assert!(
        fault("[[rule]]\nname = \"x\"\nwhen.status = 1\noutcome = \"ok\"")
            .starts_with("rule[0].outcome: must be one of accepted, throttled")
    );
    assert_eq!(with("maxspent = 1"), "rule[0].maxspent: is not a field here; did you mean max_spent?");
    assert!(with("max_spent = 1").starts_with("rule[0].max_spent: is for outcome transient"));
    assert!(with("max_spent = 0").starts_with("rule[0].max_spent: must be a number from 1"));
    assert!(with("scope = \"account\"").starts_with("rule[0].scope: is for outcome throttled"));
    assert!(with("scope = \"galaxy\"").starts_with("rule[0].scope: must be recipient"));
    assert!(with("wait = \"none\"").starts_with("rule[0].wait: is for outcomes"));
    assert!(with("reason = \"worker_lost\"").starts_with("rule[0].reason: is a word of our own"));
    assert!(
        with("[[rule]]\nname = \"x\"\nwhen.status = 1\noutcome = \"terminal\"")
            .starts_with("rule[1].name: is taken")
    );
    assert_eq!(fault("rules = []"), "rules: is not a field here; there is rule");
    assert_eq!(fault("rule = 1"), "rule: must be a list of tables");
    assert!(fault("\nrule = [").starts_with("toml: line 2: "));
    let accepted = fault(
        "[[rule]]\nname = \"x\"\nwhen = { protocol = \"link\", status = \"tls\" }\noutcome = \"accepted\"",
    );
    assert_eq!(accepted, "rule[0].outcome: cannot be accepted: nobody answered");
    assert!(Layer::from_json(Origin::File, "[{}").unwrap_err().to_string().starts_with("json: "));
    let error = serde_json::from_str::<Rule>(r#"{"name":"x"}"#).unwrap_err().to_string();
    assert!(error.contains("rule.when: is missing"), "{error}");
}

/// Bits of rules, right and wrong, put together by chance.
fn pieces() -> impl Strategy<Value = Value> {
    let status =
        prop_oneof![Just(json!(429)), Just(json!("4xx")), "\\PC{0,6}".prop_map(Value::from), Just(json!([]))];
    let predicate =
        prop_oneof![Just(json!("1")), Just(json!({ "every": [0] })), Just(json!({ "exists": false }))];
    let outcome = prop_oneof![Just("throttled"), Just("terminal"), Just("unknown"), Just("late")];
    let wait = prop_oneof![Just(json!("none")), Just(json!({ "body": "/w", "unit": "s" })), Just(json!({}))];
    let fields = (
        prop::option::of(status),
        prop::option::of(("(/[a-c*]){1,3}", predicate)),
        outcome,
        prop::option::of(wait),
    );
    fields.prop_map(|(status, body, outcome, wait)| {
        let mut rule = json!({ "name": "x", "when": {}, "outcome": outcome });
        if let Some(status) = status {
            rule["when"]["status"] = status;
        }
        if let Some((pointer, predicate)) = body {
            rule["when"]["body"] = json!({ pointer: predicate });
        }
        if let Some(wait) = wait {
            rule["wait"] = wait;
        }
        rule
    })
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let like_json = "[\\[\\]{}\":,0-9abcw]{0,40}".prop_map(String::into_bytes);
    prop_oneof![prop::collection::vec(any::<u8>(), 0..80), like_json]
}

fn statuses() -> impl Strategy<Value = u16> {
    prop_oneof![any::<u16>(), 400u16..430]
}

proptest! {
    #[test]
    fn reading_is_total(text in "\\PC{0,80}") {
        let _ = Layer::from_toml(Origin::File, &text);
        let _ = Layer::from_json(Origin::File, &text);
    }

    /// Whatever can be read can be written and read again, and gives every answer a meaning.
    #[test]
    fn what_is_read_classifies_anything(
        rule in pieces(),
        status in statuses(),
        body in bodies(),
        header in "\\PC{0,20}",
    ) {
        let Ok(rule) = Rule::read("rule", &rule) else { return Ok(()) };
        let layer = Layer::new(Origin::Operator, vec![rule]).unwrap();
        prop_assert_eq!(&toml_rules(&layer.to_toml()), &layer);
        let headers = vec![("retry-after".to_owned(), header)];
        let answer = Answer::Http(HttpAnswer { status, headers, body, body_truncated: false });
        let verdict = classify(&answer, &rules([layer]), NOW_MS);
        prop_assert!(verdict.rule == "operator:x" || verdict.rule.starts_with("http:"));
    }
}
