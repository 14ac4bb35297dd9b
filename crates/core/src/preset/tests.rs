use super::*;
use crate::budget::Rate;
use crate::request::Encoding;
use url::Url;

#[test]
fn every_file_is_read_and_found_by_its_name() {
    for (name, text) in FILES {
        let preset = Preset::from_toml(name, text).unwrap();
        assert_eq!(named(name), Some(&preset));
    }
    assert_eq!(all().len(), 15);
    assert_eq!(named("nobody"), None);
}

/// What is called sendable can be built by the transport and is let in by the checks of a request.
#[test]
fn what_is_sendable_can_be_sent() {
    let sendable: Vec<&Preset> = all().iter().filter(|preset| preset.sendable).collect();
    assert!(sendable.len() >= 6, "{}", sendable.len());
    for preset in sendable {
        assert!(preset.auth.kind.is_built(), "{}", preset.name);
        assert!([Encoding::Json, Encoding::Form].contains(&preset.request.encoding), "{}", preset.name);
        preset.form().check(&preset.name).unwrap();
    }
    let others = all().iter().filter(|preset| !preset.sendable);
    assert!(others.into_iter().all(|preset| !preset.auth.kind.is_built()));
}

#[test]
fn addresses_and_rates_are_such() {
    for preset in all() {
        if let Some(base_url) = &preset.request.base_url {
            assert_eq!(Url::parse(base_url).unwrap().scheme(), "https", "{}", preset.name);
        }
        for limit in &preset.limits {
            assert!(limit.rate.as_ref().is_none_or(|rate| rate.parse::<Rate>().is_ok()), "{limit:?}");
        }
        let names_header = preset.idempotency.header.is_some();
        assert_eq!(names_header, preset.idempotency.deduplicates == Known::Is(true), "{}", preset.name);
    }
}

#[test]
fn a_window_is_given_only_where_repeats_are_recognised() {
    assert_eq!(named("resend").unwrap().dedup_window_ms(), Some(86_400_000));
    assert!(all().iter().filter(|preset| preset.dedup_window_ms().is_some()).count() == 1);
}

#[test]
fn a_path_that_must_be_filled_in_is_no_default() {
    assert_eq!(named("resend").unwrap().form().path.as_deref(), Some("/emails"));
    assert_eq!(named("mailgun").unwrap().form().path, None);
}

#[test]
fn every_runbook_answers_the_questions_of_the_night() {
    for preset in all() {
        let page = preset.runbook();
        for title in ["A throttle", "A timeout", "Burst and sustained", "Limits", "What to set", "Sources"] {
            assert!(page.contains(&format!("\n{title}\n")), "{}: {title}", preset.name);
        }
        let fits = |line: &str| line.chars().count() <= 100 || line.split_whitespace().count() == 1;
        assert!(page.lines().all(fits), "{page}");
    }
    insta::assert_snapshot!(named("resend").unwrap().runbook());
}

#[test]
fn what_is_unknown_says_so() {
    let page = named("bird").unwrap().runbook();
    assert!(page.contains("Whether a repeat is recognised is unknown"), "{page}");
    let page = named("apns").unwrap().runbook();
    assert!(page.contains("Vocabulary and runbook only"), "{page}");
}

#[test]
fn a_field_too_many_is_refused_by_name() {
    let text = FILES[0].1.replacen("kind = ", "knid = ", 1);
    let fault = Preset::from_toml("x", &text).unwrap_err();
    assert!(fault.problem.contains("knid"), "{fault}");
}
