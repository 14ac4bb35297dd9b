use super::*;
use crate::scenario::LimitStep;
use proptest::prelude::*;

/// 2026-11-30, so that the record's times look like times.
const START_US: u64 = 1_796_000_000_000_000;

fn at(ms: u64) -> Moment {
    Moment { since_start: Duration::from_millis(ms), unix_us: START_US + ms * 1_000 }
}

fn with(change: impl FnOnce(&mut Scenario)) -> Provider {
    let mut scenario = Scenario { rate_per_s: 0.0, burst: 100, ..Scenario::default() };
    change(&mut scenario);
    scenario.check().unwrap();
    Provider::new(scenario)
}

fn sent(provider: &mut Provider, send_id: &str, now_ms: u64) -> Ending {
    let arrival = Arrival { send_id: Some(send_id.into()), credential: "Bearer a".into(), payload_key: None };
    provider.receive(arrival, at(now_ms)).ending
}

fn status(ending: &Ending) -> u16 {
    match ending {
        Ending::Answer(reply) => reply.status,
        Ending::Cut | Ending::Hang(_) => 0,
    }
}

/// The statuses that so many new send ids get at one moment.
fn statuses(provider: &mut Provider, now_ms: u64, count: usize) -> Vec<u16> {
    let arrival = Arrival { credential: "Bearer a".into(), ..Arrival::default() };
    (0..count).map(|_| status(&provider.receive(arrival.clone(), at(now_ms)).ending)).collect()
}

fn accepted(provider: &mut Provider, now_ms: u64, count: usize) -> usize {
    statuses(provider, now_ms, count).into_iter().filter(|status| *status == 202).count()
}

fn error(status: u16, share: f64) -> ErrorAnswer {
    ErrorAnswer { share, ..ErrorAnswer::new(status) }
}

#[test]
fn a_burst_passes_then_only_the_rate() {
    let mut provider = with(|s| (s.burst, s.rate_per_s) = (3, 10.0));
    assert_eq!(statuses(&mut provider, 0, 5), [202, 202, 202, 429, 429]);
    assert_eq!(statuses(&mut provider, 100, 2), [202, 429]);
    let summary = provider.summary();
    assert_eq!((summary.requests, summary.accepted, summary.throttled), (7, 4, 3));
}

#[test]
fn every_credential_has_a_limit_of_its_own() {
    let mut provider = with(|s| s.burst = 1);
    for credential in ["Bearer a", "Bearer b", "anonymous"] {
        let arrival = || Arrival { credential: credential.into(), ..Arrival::default() };
        let endings = [0, 1].map(|_| status(&provider.receive(arrival(), at(0)).ending));
        assert_eq!(endings, [202, 429], "{credential}");
    }
}

#[test]
fn where_refusals_consume_a_hammering_sender_waits_longer() {
    let passed = |refusals_consume| {
        let mut provider = with(|s| (s.burst, s.rate_per_s, s.refusals_consume) = (2, 1.0, refusals_consume));
        assert_eq!(accepted(&mut provider, 0, 10), 2);
        [1_000, 2_999, 4_000].map(|now_ms| accepted(&mut provider, now_ms, 1))
    };
    assert_eq!(passed(false), [1, 1, 1]);
    // Charged down to -2 at once; back at -1 after 1 s and charged again; never at 1 before the next knock.
    assert_eq!(passed(true), [0, 0, 0]);
}

#[test]
fn a_recognised_repeat_gets_its_first_acceptance_and_is_not_delivered_again() {
    let mut provider = with(|_| {});
    let first = sent(&mut provider, "x", 0);
    assert_eq!(status(&first), 202);
    assert_ne!(sent(&mut provider, "y", 1), first);
    assert_eq!(sent(&mut provider, "x", 2), first);
    let ledger = provider.ledger();
    let entry = ledger.entry("x").unwrap();
    assert_eq!((entry.arrivals, entry.delivered, entry.repeats_deduplicated), (2, 1, 1));
    assert_eq!(
        ledger.summary,
        LedgerSummary {
            requests: 3,
            accepted: 2,
            delivered: 2,
            repeats_deduplicated: 1,
            ..LedgerSummary::default()
        }
    );
}

#[test]
fn without_deduplication_every_repeat_is_a_duplicate() {
    let mut provider = with(|s| s.deduplicates = false);
    let endings = [0, 1, 2].map(|now_ms| sent(&mut provider, "x", now_ms));
    assert!(endings[0] != endings[1] && endings[1] != endings[2], "each has a message id of its own");
    let summary = provider.summary();
    assert_eq!((summary.accepted, summary.delivered, summary.duplicates), (1, 3, 2));
    assert_eq!(provider.ledger().entry("x").unwrap().message_id.as_deref(), Some("msg-1"));
}

#[test]
fn requests_without_a_send_id_are_never_repeats() {
    let mut provider = with(|_| {});
    assert_eq!(accepted(&mut provider, 0, 3), 3);
    // Whoever calls himself like one of them is still somebody else.
    assert_eq!(status(&sent(&mut provider, "none:1", 0)), 202);
    assert_eq!((provider.summary().accepted, provider.summary().duplicates), (4, 0));
}

#[test]
fn a_repeat_passes_the_limit_only_where_repeats_consume() {
    for (repeats_consume, expected) in [(true, 429), (false, 202)] {
        let mut provider = with(|s| (s.burst, s.repeats_consume) = (1, repeats_consume));
        sent(&mut provider, "x", 0);
        assert_eq!(status(&sent(&mut provider, "x", 0)), expected);
        assert_eq!(status(&sent(&mut provider, "y", 0)), 429);
    }
}

#[test]
fn a_throttled_send_id_is_no_repeat_until_it_was_delivered() {
    let mut provider = with(|s| (s.burst, s.rate_per_s, s.repeats_consume) = (1, 1.0, false));
    sent(&mut provider, "x", 0);
    assert_eq!(status(&sent(&mut provider, "y", 0)), 429);
    assert_eq!(status(&sent(&mut provider, "y", 500)), 429);
    assert_eq!(status(&sent(&mut provider, "y", 1_000)), 202);
}

#[test]
fn an_error_may_hide_a_delivery() {
    let mut provider = with(|s| s.always = Some(ErrorAnswer { delivered: true, ..ErrorAnswer::new(500) }));
    assert_eq!(status(&sent(&mut provider, "x", 0)), 500);
    provider.patch(serde_json::json!({ "always": null }), at(1)).unwrap();
    assert_eq!(status(&sent(&mut provider, "x", 2)), 202);
    let ledger = provider.ledger();
    let entry = ledger.entry("x").unwrap();
    assert_eq!((entry.refused, entry.delivered, entry.repeats_deduplicated), (1, 1, 1));
    assert_eq!(entry.first_accepted_us, Some(START_US), "delivered when the error said otherwise");
}

#[test]
fn an_error_429_counts_as_throttled_and_any_other_as_refused() {
    for (code, throttled, refused) in [(429, 1, 0), (503, 0, 1), (403, 0, 1), (200, 0, 1)] {
        let mut provider = with(|s| s.always = Some(ErrorAnswer::new(code)));
        assert_eq!(status(&sent(&mut provider, "x", 0)), code);
        let summary = provider.summary();
        assert_eq!(
            (summary.throttled, summary.refused, summary.delivered),
            (throttled, refused, 0),
            "{code}"
        );
    }
}

#[test]
fn what_happens_always_asks_neither_limit_nor_credential() {
    let mut provider = with(|s| {
        (s.burst, s.accept_keys, s.always) = (1, Some(vec![]), Some(ErrorAnswer::new(418)));
    });
    assert_eq!(statuses(&mut provider, 0, 3), [418; 3]);
}

#[test]
fn only_known_credentials_may_send_and_others_cost_nothing() {
    let mut provider =
        with(|s| (s.burst, s.accept_keys) = (1, Some(vec!["a".into(), "ApiKey whole".into()])));
    for (credential, expected) in
        [("Bearer b", 401), ("anonymous", 401), ("Bearer a", 202), ("a", 202), ("ApiKey whole", 202)]
    {
        let arrival = Arrival { credential: credential.into(), ..Arrival::default() };
        assert_eq!(status(&provider.receive(arrival, at(0)).ending), expected, "{credential}");
    }
    assert_eq!((provider.summary().refused, provider.summary().accepted), (2, 3));
}

#[test]
fn the_shares_hold_and_the_same_seed_meets_the_same_fates() {
    let fates = |seed| {
        let mut provider = with(|s| {
            (s.burst, s.seed) = (10_000, seed);
            (s.unanswered_share, s.hang_share) = (0.1, 0.2);
            s.errors = vec![error(500, 0.3), error(400, 0.1)];
        });
        statuses(&mut provider, 0, 4_000)
    };
    let first = fates(7);
    assert_eq!(first, fates(7));
    assert_ne!(first, fates(8));
    for (code, share) in [(0, 0.3), (500, 0.3), (400, 0.1), (202, 0.3)] {
        let got = first.iter().filter(|status| **status == code).count() as f64 / 4_000.0;
        assert!((got - share).abs() < 0.03, "{code}: {got}");
    }
}

#[test]
fn unanswered_requests_are_delivered() {
    let mut provider = with(|s| s.unanswered_share = 1.0);
    assert_eq!(sent(&mut provider, "x", 0), Ending::Cut);
    provider
        .patch(serde_json::json!({ "unanswered_share": 0, "hang_share": 1, "hang_ms": 7 }), at(0))
        .unwrap();
    assert_eq!(sent(&mut provider, "y", 0), Ending::Hang(Duration::from_millis(7)));
    assert_eq!(sent(&mut provider, "x", 0), Ending::Hang(Duration::from_millis(7)));
    let summary = provider.summary();
    assert_eq!((summary.unanswered, summary.delivered, summary.repeats_deduplicated), (3, 2, 1));
}

#[test]
fn a_new_scenario_hands_out_no_fresh_burst() {
    let mut provider = with(|s| s.burst = 5);
    assert_eq!(accepted(&mut provider, 0, 9), 5);
    provider.patch(serde_json::json!({ "burst": 50, "rate_per_s": 10 }), at(60_000)).unwrap();
    assert_eq!(accepted(&mut provider, 60_000, 9), 0, "the minute before had its own rate: none");
    assert_eq!(accepted(&mut provider, 60_500, 9), 5, "the new rate counts from the change on");
    provider.patch(serde_json::json!({ "burst": 2 }), at(90_000)).unwrap();
    assert_eq!(accepted(&mut provider, 90_000, 9), 2, "a smaller burst caps what was saved");
}

#[test]
fn the_schedule_runs_from_the_start_and_again_after_a_reset() {
    let mut provider = with(|s| {
        s.burst = 10;
        s.limit_schedule = vec![LimitStep { at_s: 1.0, rate_per_s: 2.0 }];
    });
    let run = |provider: &mut Provider, from_ms: u64| {
        [0, 1_000, 2_000].map(|now_ms| accepted(provider, from_ms + now_ms, 20))
    };
    assert_eq!(run(&mut provider, 0), [10, 0, 2]);
    provider.reset(at(500_000));
    assert_eq!(provider.ledger(), with(|_| {}).ledger());
    assert_eq!(run(&mut provider, 500_000), [10, 0, 2]);
}

#[test]
fn a_reset_gives_no_message_id_twice() {
    let mut provider = with(|_| {});
    let first = sent(&mut provider, "x", 0);
    provider.reset(at(1));
    assert_ne!(sent(&mut provider, "x", 2), first);
    assert_eq!(provider.summary().repeats_deduplicated, 0);
}

#[test]
fn the_delay_is_the_latency_and_a_drawn_part_of_the_jitter() {
    let mut provider = with(|s| (s.latency_ms, s.latency_jitter_ms) = (20, 10));
    let delays: Vec<u128> =
        (0..100).map(|_| provider.receive(Arrival::default(), at(0)).delay.as_micros()).collect();
    assert!(delays.iter().all(|us| (20_000..30_000).contains(us)), "{delays:?}");
    assert!(delays.iter().any(|us| *us > 25_000) && delays.iter().any(|us| *us < 25_000));
}

#[test]
fn an_oversized_send_id_is_refused_without_a_line() {
    let mut provider = with(|_| {});
    assert_eq!(status(&sent(&mut provider, &"x".repeat(256), 0)), 400);
    let ledger = provider.ledger();
    assert_eq!((ledger.entries.len(), ledger.summary.requests, ledger.summary.refused), (0, 1, 1));
}

#[test]
fn a_line_tells_the_whole_story_of_its_send_id() {
    let mut provider = with(|s| (s.burst, s.rate_per_s) = (1, 1.0));
    sent(&mut provider, "other", 0);
    let arrival = |key: Option<&str>| Arrival {
        send_id: Some("x".into()),
        credential: "Bearer a".into(),
        payload_key: key.map(str::to_owned),
    };
    for (now_ms, key) in [(10, None), (1_000, Some("welcome:42")), (2_000, Some("later"))] {
        provider.receive(arrival(key), at(now_ms));
    }
    let expected = LedgerEntry {
        send_id: "x".into(),
        credential: "Bearer a".into(),
        payload_key: Some("welcome:42".into()),
        message_id: Some("msg-2".into()),
        first_arrived_us: START_US + 10_000,
        last_arrived_us: START_US + 2_000_000,
        first_accepted_us: Some(START_US + 1_000_000),
        arrivals: 3,
        throttled: 1,
        refused: 0,
        refused_for_good: 0,
        delivered: 1,
        repeats_deduplicated: 1,
        unanswered: 0,
    };
    let ledger = provider.ledger();
    assert_eq!(ledger.entry("x"), Some(&expected));
    let seconds: Vec<_> = ledger.timeline.iter().map(|s| (s.arrivals, s.throttled, s.accepted)).collect();
    assert_eq!(seconds, [(2, 1, 1), (1, 0, 1), (1, 0, 0)]);
}

prop_compose! {
    fn any_scenario()(
        burst in 1u32..20, rate_per_s in 0.0f64..50.0, unanswered_share in 0.0f64..0.3,
        hang_share in 0.0f64..0.3, error_share in 0.0f64..0.2,
        delivered in any::<bool>(), deduplicates in any::<bool>(),
        refusals_consume in any::<bool>(), repeats_consume in any::<bool>(), seed in any::<u64>(),
    ) -> Scenario {
        let errors = vec![
            ErrorAnswer { delivered, ..error(500, error_share) }, error(429, error_share),
        ];
        Scenario {
            burst, rate_per_s, unanswered_share, hang_share, errors, deduplicates, refusals_consume,
            repeats_consume, seed, ..Scenario::default()
        }
    }
}

proptest! {
    /// Whatever happens, the totals say what the lines say, and every request ended in exactly one way.
    #[test]
    fn the_ledger_adds_up(
        scenario in any_scenario(), sends in prop::collection::vec((0u8..20, 0u64..200), 0..200),
    ) {
        let mut provider = Provider::new(scenario);
        let (mut now_ms, mut acceptances) = (0, 0);
        for (send_id, pause_ms) in sends {
            now_ms += pause_ms;
            let ending = sent(&mut provider, &send_id.to_string(), now_ms);
            acceptances += u64::from(status(&ending) == 202);
        }
        let Ledger { summary, entries, timeline } = provider.ledger();
        let total = |of: fn(&LedgerEntry) -> u32| -> u64 { entries.iter().map(|e| u64::from(of(e))).sum() };
        let added = LedgerSummary {
            requests: total(|e| e.arrivals),
            throttled: total(|e| e.throttled),
            refused: total(|e| e.refused),
            accepted: total(|e| u32::from(e.delivered > 0)),
            delivered: total(|e| e.delivered),
            duplicates: total(|e| e.delivered.saturating_sub(1)),
            repeats_deduplicated: total(|e| e.repeats_deduplicated),
            unanswered: total(|e| e.unanswered),
        };
        prop_assert_eq!(summary, added);
        prop_assert_eq!(
            summary.requests, summary.throttled + summary.refused + summary.unanswered + acceptances
        );
        let seconds = timeline.iter().fold((0, 0, 0), |sum, second| {
            (sum.0 + second.arrivals, sum.1 + second.throttled, sum.2 + second.accepted)
        });
        prop_assert_eq!(seconds, (summary.requests, summary.throttled, summary.accepted));
    }
}
