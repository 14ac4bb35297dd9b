use super::*;
use crate::answer::HttpAnswer;
use proptest::prelude::*;
use serde_json::json;

const NOW_MS: u64 = 1_796_115_600_000; // 2026-12-01T09:00:00Z

fn wait(place: Value, headers: &[(&str, &str)], body: &str) -> Option<u64> {
    let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let answer = HttpAnswer { status: 429, headers, body: body.into(), body_truncated: false };
    Wait::read("wait", &place).unwrap().find_ms(&Facts::http(&answer), NOW_MS)
}

#[test]
fn each_unit_is_read_as_it_says() {
    let reset = |unit: &str, value: &str| {
        wait(json!({ "header": "X-Reset", "unit": unit }), &[("x-reset", value)], "")
    };
    assert_eq!(reset("s", "2.5"), Some(2_500));
    assert_eq!(reset("ms", "2.5"), Some(3));
    assert_eq!(reset("ms", "978"), Some(978));
    assert_eq!(reset("epoch_s", "1796115630"), Some(30_000));
    assert_eq!(reset("epoch_ms", "1796115630500"), Some(30_500));
    assert_eq!(reset("date", "Tue, 01 Dec 2026 09:00:30 GMT"), Some(30_000));
    assert_eq!(reset("date", "2026-12-01T10:00:30+01:00"), Some(30_000));
    assert_eq!(reset("date", "2026-12-01 09:00:30"), Some(30_000));
    assert_eq!(reset("date", "2026-12-02"), Some(54_000_000));
    for (value, ms) in
        [("30", 30_000), ("1796115630", 30_000), ("1796115630500", 30_500), ("2026-12-01T09:00:30Z", 30_000)]
    {
        assert_eq!(reset("auto", value), Some(ms), "{value}");
    }
}

#[test]
fn what_is_odd_equals_nothing_and_the_past_is_no_wait() {
    for unit in ["s", "ms", "epoch_s", "epoch_ms", "date", "auto"] {
        for odd in ["", "soon", "-5", "1e9", "nan", "0x10"] {
            let found =
                wait(json!({ "body": "/wait", "unit": unit }), &[], &json!({ "wait": odd }).to_string());
            assert_eq!(found.filter(|_| odd != "1e9"), None, "{unit} {odd:?}");
        }
    }
    let reset = |unit: &str, value: &str| {
        wait(json!({ "header": "x-reset", "unit": unit }), &[("x-reset", value)], "")
    };
    assert_eq!(reset("epoch_s", "1372700873"), Some(0));
    assert_eq!(reset("epoch_s", "4102444800"), None, "the year 2100");
    assert_eq!(reset("s", "18446744073709551616"), Some(u64::MAX), "long, and no overflow");
}

/// failures 20: a wait in words.
#[test]
fn a_number_or_date_behind_a_text_is_read() {
    let vonage = r#"{"messages":[{"status":"1","error-text":"Throughput Rate Exceeded - please wait [ 978 ] and retry"}]}"#;
    assert_eq!(wait(json!({ "text": "Please WAIT", "unit": "ms" }), &[], vonage), Some(978));
    let after = |unit: &str, text: &str| wait(json!({ "text": "after", "unit": unit }), &[], text);
    assert_eq!(after("s", "Try again after 1.5 seconds."), Some(1_500));
    assert_eq!(after("s", "Try again after 12."), Some(12_000));
    assert_eq!(after("s", "Try again after -12"), None);
    assert_eq!(after("auto", "retry after (2026-12-01 09:01:00), please"), Some(60_000));
    assert_eq!(after("auto", r#"{"after":"2026-12-01T09:01:00Z"}"#), Some(60_000));
    assert_eq!(after("date", "after Tue, 01 Dec 2026 09:00:10 GMT."), Some(10_000));
    assert_eq!(after("auto", "after 7 s"), Some(7_000));
    assert_eq!(after("s", "no number stands here after"), None);
}

/// failures 13: a reset is consulted only where `Retry-After` is absent; a body is about this very job.
#[test]
fn the_body_wins_over_retry_after_and_retry_after_over_other_headers() {
    let headers = [("retry-after", "2"), ("x-reset", "9")];
    assert_eq!(wait(json!({ "header": "x-reset", "unit": "s" }), &headers, ""), Some(2_000));
    assert_eq!(wait(json!({ "body": "/wait", "unit": "s" }), &headers, r#"{"wait":5}"#), Some(5_000));
    assert_eq!(wait(json!({ "body": "/wait", "unit": "s" }), &headers, "{}"), Some(2_000));
    assert_eq!(wait(json!("none"), &headers, ""), None);
}

#[test]
fn an_instant_is_measured_against_the_answers_own_date() {
    let headers = [("date", "Tue, 01 Dec 2026 09:01:30 GMT"), ("x-reset", "1796115720")];
    assert_eq!(wait(json!({ "header": "x-reset", "unit": "epoch_s" }), &headers, ""), Some(30_000));
}

#[test]
fn a_fault_names_its_field() {
    let fault = |value| Wait::read("wait", &value).unwrap_err().to_string();
    assert_eq!(
        fault(json!({ "header": "a", "body": "/a" })),
        "wait: must name one place: header, body or text"
    );
    assert_eq!(fault(json!({ "unit": "s" })), "wait: must name one place: header, body or text");
    assert_eq!(
        fault(json!({ "header": "a", "unit": "h" })),
        "wait.unit: must be s, ms, epoch_s, epoch_ms, date or auto"
    );
    assert_eq!(fault(json!(3)), "wait: must be \"none\" or a table with header, body or text");
    assert!(fault(json!({ "body": "a" })).starts_with("wait.body: must be a JSON pointer"));
}

proptest! {
    #[test]
    fn it_is_total(unit in 0usize..6, value in "\\PC{0,40}", body in prop::collection::vec(any::<u8>(), 0..120)) {
        let unit = ["s", "ms", "epoch_s", "epoch_ms", "date", "auto"][unit];
        wait(json!({ "header": "x-reset", "unit": unit }), &[("x-reset", &value)], "");
        let mut answer = HttpAnswer { body: b"wait ".to_vec(), ..HttpAnswer::default() };
        answer.body.extend(body);
        Wait::read("wait", &json!({ "text": "wait", "unit": unit })).unwrap().find_ms(&Facts::http(&answer), NOW_MS);
    }
}
