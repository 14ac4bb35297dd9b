use super::*;
use crate::answer::{HttpAnswer, SmppAnswer};
use proptest::prelude::*;
use serde_json::json;

fn condition(value: Value) -> Condition {
    Condition::read("when", &value).unwrap()
}

fn fault(value: Value) -> String {
    Condition::read("when", &value).unwrap_err().to_string()
}

fn holds(value: Value, status: u16, headers: &[(&str, &str)], body: &str) -> bool {
    let answer = HttpAnswer {
        status,
        headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        body: body.into(),
        body_truncated: false,
    };
    condition(value).holds(&Facts::http(&answer))
}

#[test]
fn a_status_is_a_number_a_class_or_a_range() {
    let at = |status| holds(json!({ "status": [429, "5xx", "300-308"] }), status, &[], "");
    assert!([429, 500, 599, 300, 308].into_iter().all(at));
    assert!(![428, 430, 600, 299, 309].into_iter().any(at));
}

#[test]
fn a_header_is_there_has_a_value_or_is_not_there() {
    let headers = [("x-error", " Throttle "), ("x-blank", " ")];
    let at = |header: Value| holds(json!({ "header": header }), 400, &headers, "");
    assert!(at(json!({ "X-Error": "Throttle" })));
    assert!(!at(json!({ "x-error": "throttle" })), "an exact value is exact");
    assert!(at(json!({ "x-error": { "contains": "THROTT" } })));
    assert!(at(json!({ "x-blank": { "exists": false }, "x-other": { "exists": false } })));
    assert!(!at(json!({ "x-error": { "exists": false } })));
}

#[test]
fn everything_that_is_asked_must_hold() {
    let asked = json!({ "status": 403, "body": { "/errors/*/message": { "contains": "blocked" } }, "text": "temporar" });
    let body = r#"{"errors":[{"message":"x"},{"message":"Temporarily BLOCKED"}]}"#;
    assert!(holds(asked.clone(), 403, &[], body));
    assert!(!holds(asked.clone(), 400, &[], body));
    assert!(!holds(asked.clone(), 403, &[], "temporarily blocked, but no JSON"));
    assert!(!holds(asked, 403, &[], &body.replace("BLOCKED", "refused")));
}

#[test]
fn text_is_looked_for_in_the_first_4_kib_only() {
    let at = |before: usize| {
        holds(json!({ "text": "SLOW down" }), 400, &[], &format!("{}Slow Down", "x".repeat(before)))
    };
    assert!(at(0) && at(4096 - 9));
    assert!(!at(4096 - 8));
}

#[test]
fn http_is_meant_where_nothing_else_is_said() {
    let smpp = SmppAnswer { status: 0x58, message_id: None };
    assert!(condition(json!({ "protocol": "smpp", "status": "0x58" })).holds(&Facts::smpp(&smpp)));
    assert!(condition(json!({ "protocol": "smpp", "status": "0x50-0x60" })).holds(&Facts::smpp(&smpp)));
    assert!(!condition(json!({ "status": 88 })).holds(&Facts::smpp(&smpp)));
    let link = Facts::link("not_sent", "tls", "bad certificate: expired");
    let at = |status: &str| condition(json!({ "protocol": "link", "status": status })).holds(&link);
    assert!(at("tls") && at("not_sent"));
    assert!(!at("connect"));
    assert!(condition(json!({ "protocol": "link", "text": "Expired" })).holds(&link));
}

#[test]
fn a_fault_names_its_field() {
    assert_eq!(fault(json!({})), "when: asks for nothing: status, header, body or text");
    assert_eq!(fault(json!({ "protocol": "link" })), "when: asks for nothing: status, header, body or text");
    assert_eq!(fault(json!(7)), "when: must be a table");
    assert_eq!(fault(json!({ "staus": 4 })), "when.staus: is not a field here; did you mean status?");
    for status in [json!("6xx"), json!("xx"), json!(-1), json!(4.5), json!("9-3"), json!([[]]), json!(null)] {
        assert!(fault(json!({ "status": status })).starts_with("when.status: must be a status"), "{status}");
    }
    assert!(fault(json!({ "protocol": "link", "status": "shutdown" })).starts_with("when.status: must be"));
    for (protocol, key, value) in [
        ("smpp", "body", json!({ "/a": 1 })),
        ("link", "header", json!({ "a": 1 })),
        ("smpp", "text", json!("a")),
    ] {
        let told = fault(json!({ "protocol": protocol, key: value }));
        assert_eq!(told, format!("when.{key}: is not part of an answer by this protocol"));
    }
    assert_eq!(
        fault(json!({ "header": { "a b": 1 } })),
        "when.header.\"a b\": is not a header name (RFC 9110 §5.1)"
    );
    assert!(
        fault(json!({ "body": { "code": 1 } })).starts_with("when.body.\"code\": must be a JSON pointer")
    );
    assert_eq!(fault(json!({ "body": {} })), "when.body: must be a table with at least one entry");
    assert_eq!(fault(json!({ "text": " " })), "when.text: must be a text that is not blank");
    assert_eq!(fault(json!({ "protocol": "ftp", "status": 1 })), "when.protocol: must be http, smpp or link");
}

proptest! {
    #[test]
    fn a_text_is_found_where_it_stands(before in "[ab]{0,6}", text in "[ab]{1,3}", after in "[ab]{0,6}") {
        let head = format!("{before}{text}{after}");
        prop_assert_eq!(find(head.as_bytes(), &text), head.find(&text));
    }

    #[test]
    fn it_is_total(status in any::<u16>(), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let answer = HttpAnswer { status, body, ..HttpAnswer::default() };
        let asked = json!({ "status": "4xx", "body": { "/*/*": { "other_than": 1 } }, "text": "a" });
        condition(asked).holds(&Facts::http(&answer));
    }
}
