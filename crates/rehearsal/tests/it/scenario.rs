//! How a scenario is written, and what it may not say.

use paceline_rehearsal::Scenario;
use paceline_rehearsal::scenario::{ErrorAnswer, LimitStep, RetryAfter};

#[test]
fn a_scenario_says_only_what_differs() {
    let scenario = Scenario::from_toml(
        r#"
        rate_per_s = 20
        burst = 10
        retry_after = "date"
        unanswered_share = 0.01
        limit_schedule = [{ at_s = 30.0, rate_per_s = 5.0 }]
        accept_keys = ["bulk"]

        [[errors]]
        status = 500
        share = 0.02
        delivered = true
        "#,
    )
    .unwrap();
    let expected = Scenario {
        rate_per_s: 20.0,
        burst: 10,
        retry_after: RetryAfter::Date,
        unanswered_share: 0.01,
        limit_schedule: vec![LimitStep { at_s: 30.0, rate_per_s: 5.0 }],
        accept_keys: Some(vec!["bulk".into()]),
        errors: vec![ErrorAnswer { share: 0.02, delivered: true, ..ErrorAnswer::new(500) }],
        ..Scenario::default()
    };
    assert_eq!(scenario, expected);
    assert_eq!(Scenario::from_toml("").unwrap(), Scenario::default());
}

#[test]
fn a_scenario_reads_back_from_what_it_is_written_as() {
    let scenario = Scenario {
        limit_schedule: vec![LimitStep { at_s: 1.5, rate_per_s: 0.0 }],
        errors: vec![ErrorAnswer { share: 0.25, retry_after: Some("5".into()), ..ErrorAnswer::new(503) }],
        always: Some(ErrorAnswer { body: Some("{}".into()), ..ErrorAnswer::new(200) }),
        accept_keys: Some(vec![]),
        seed: 42,
        ..Scenario::default()
    };
    for scenario in [scenario, Scenario::default()] {
        let text = toml::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_toml(&text).unwrap(), scenario, "{text}");
        assert_eq!(toml::from_str::<Scenario>(&text).unwrap(), scenario);
        let text = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
    }
}

#[test]
fn every_refusal_names_its_field() {
    for (field, text) in [
        ("scenario", "rate_per_s ="),
        ("rate", "rate = 5"),
        ("rate_per_s", "rate_per_s = \"5/s\""),
        ("rate_per_s", "rate_per_s = -0.1"),
        ("rate_per_s", "rate_per_s = nan"),
        ("rate_per_s", "rate_per_s = inf"),
        ("burst", "burst = 0"),
        ("burst", "burst = 1.5"),
        ("throttle_status", "throttle_status = 302"),
        ("retry_after", "retry_after = \"minutes\""),
        ("retry_after_s", "retry_after_s = -1"),
        ("retry_after_raw", "retry_after_raw = \"a\\nb\""),
        ("latency_ms", "latency_ms = 86400000"),
        ("latency_jitter_ms", "latency_jitter_ms = -5"),
        ("hang_ms", "hang_ms = 99999999999"),
        ("unanswered_share", "unanswered_share = 1.1"),
        ("hang_share", "unanswered_share = 0.6\nhang_share = 0.6"),
        ("errors[1].share", "errors = [{ status = 500, share = 0.7 }, { status = 503, share = 0.7 }]"),
        ("errors[0].status", "errors = [{ status = 600, share = 0.1 }]"),
        ("errors[0].retry_after", "errors = [{ status = 503, share = 0.1, retry_after = \"\\u0000\" }]"),
        ("errors", "errors = [{ share = 0.1 }]"),
        ("always", "always = { status = 500, delay = 1 }"),
        ("always.status", "always = { status = 100 }"),
        ("always.share", "always = { status = 500, share = 0.5 }"),
        ("idempotency_header", "idempotency_header = \"\""),
        ("limit_schedule", "limit_schedule = [{ at_s = 1 }]"),
        ("limit_schedule[0].at_s", "limit_schedule = [{ at_s = -1, rate_per_s = 1 }]"),
        (
            "limit_schedule[1].at_s",
            "limit_schedule = [{ at_s = 5, rate_per_s = 1 }, { at_s = 4, rate_per_s = 1 }]",
        ),
        ("limit_schedule[0].rate_per_s", "limit_schedule = [{ at_s = 1, rate_per_s = -1 }]"),
        ("seed", "seed = \"lucky\""),
    ] {
        let fault = Scenario::from_toml(text).unwrap_err();
        assert_eq!(fault.field, field, "{text}: {fault}");
    }
}

#[test]
fn ten_shares_of_a_tenth_are_a_whole() {
    let tenth = ErrorAnswer { share: 0.1, ..ErrorAnswer::new(500) };
    let scenario = Scenario { errors: vec![tenth; 10], ..Scenario::default() };
    assert_eq!(scenario.check(), Ok(()));
}
