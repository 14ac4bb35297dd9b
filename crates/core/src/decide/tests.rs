use super::*;
use crate::JobKey;
use crate::backoff::Backoff;
use crate::policy::Trips;
use proptest::prelude::*;

const NOW_MS: u64 = 1_796_000_000_000;
const DRAWS: Draws = Draws { spread: 0.0, jitter: 0.0 };

fn policy(on_ambiguous: OnAmbiguous, dedup_window_ms: Option<u64>) -> Policy {
    Policy {
        max_spent: 8,
        max_unknown: 3,
        max_lapses: 3,
        solo_lapses: 2,
        throttle_horizon_ms: 86_400_000,
        tries_per_hour: 60,
        backoff: Backoff::new(500, 60_000).unwrap(),
        on_ambiguous,
        dedup_window_ms,
        trips: Trips::default(),
    }
}

fn job() -> Job {
    Job::new(JobKey::new("k").unwrap(), b"{}".to_vec(), NOW_MS)
}

fn decided(job: &Job, outcome: &Outcome) -> Decision {
    decide(job, outcome, &policy(OnAmbiguous::Ask, Some(86_400_000)), Seen::default(), NOW_MS, DRAWS)
}

fn throttled(retry_after_ms: Option<u64>) -> Outcome {
    Outcome::Throttled { retry_after_ms, scope: Scope::Credential }
}

fn transient() -> Outcome {
    Outcome::Transient { reason: "connect".into(), retry_after_ms: None }
}

#[test]
fn a_throttled_job_spends_nothing_and_holds_the_sender() {
    let decision = decided(&job(), &throttled(Some(1_000)));
    assert_eq!(
        (decision.target, decision.counters.spent, decision.counters.throttles),
        (State::Pending, 0, 1)
    );
    assert!(decision.delay_ms >= 1_000);
    let hold = decision.hold.unwrap();
    assert_eq!(
        (hold.on, hold.cause, hold.delay_ms, hold.probe_ms),
        (HoldOn::Credential, HoldCause::RetryAfter, 1_000, 0)
    );
}

/// failures 4, 5: the job waits as asked, the sender's hold is clamped and probes.
#[test]
fn a_long_wait_is_never_shortened_for_the_job() {
    for asked_s in [61, 75, 300, 3_600, 86_400] {
        assert!(decided(&job(), &throttled(Some(asked_s * 1000))).delay_ms >= asked_s * 1000, "{asked_s}");
    }
    let decision = decided(&job(), &throttled(Some(u64::MAX)));
    assert_eq!((decision.target, decision.delay_ms), (State::Pending, MAX_DELAY_MS));
    let hold = decision.hold.unwrap();
    assert_eq!((hold.delay_ms, hold.probe_ms), (900_000, 900_000));
}

/// failures 2, 11: no wait named, or an instant gone by: own backoff, no hold, no hot loop.
#[test]
fn no_named_wait_means_own_backoff() {
    for asked in [None, Some(0)] {
        let draws = Draws { spread: 0.0, jitter: 0.5 };
        let policy = policy(OnAmbiguous::Ask, None);
        let decision = decide(&job(), &throttled(asked), &policy, Seen::default(), NOW_MS, draws);
        assert_eq!((decision.delay_ms, decision.hold), (250, None));
    }
}

#[test]
fn a_job_throttled_beyond_its_horizon_waits_for_a_person() {
    let late = Job { throttled_since_ms: Some(NOW_MS - 86_400_000), ..job() };
    assert_eq!(decided(&late, &throttled(None)).target, State::Deferred);
    let soon = Job { throttled_since_ms: Some(NOW_MS - 86_399_999), ..job() };
    assert_eq!(decided(&soon, &throttled(None)).target, State::Pending);
}

#[test]
fn transient_failures_spend_and_end_as_dead_letters() {
    let mut job = job();
    for spent in 1..8 {
        let decision = decided(&job, &transient());
        assert_eq!((decision.target, decision.counters.spent), (State::Pending, spent));
        job.counters = decision.counters;
    }
    let decision = decided(&job, &transient());
    assert_eq!(decision.target, State::Deferred);
    assert_eq!(decision.reason, "8 attempts spent: connect");
}

#[test]
fn an_unknown_answer_has_a_low_cap() {
    let mut job = job();
    let unknown = Outcome::Unknown { code: "418".into(), retry_after_ms: None };
    let ends = [(); 3].map(|()| {
        let decision = decided(&job, &unknown);
        job.counters = decision.counters;
        decision.target
    });
    assert_eq!(ends, [State::Pending, State::Pending, State::Deferred]);
}

#[test]
fn where_nobody_can_tell_the_provider_or_the_class_decides() {
    let timeout = Outcome::ambiguous("deadline");
    let end = |on_ambiguous, window| {
        decide(&job(), &timeout, &policy(on_ambiguous, window), Seen::default(), NOW_MS, DRAWS).target
    };
    assert_eq!(end(OnAmbiguous::Ask, Some(86_400_000)), State::Pending);
    assert_eq!(end(OnAmbiguous::Ask, None), State::Unconfirmed);
    assert_eq!(end(OnAmbiguous::Retry, None), State::Pending);
    let old = Job { sent_since_ms: Some(NOW_MS - 86_400_000), ..job() };
    assert_eq!(decided(&old, &timeout).target, State::Unconfirmed, "past the window a person says yes");
}

#[test]
fn a_lost_worker_raises_lapses_only_and_parks_on_the_third() {
    let lost = Outcome::ambiguous(crate::outcome::WORKER_LOST);
    let first = decided(&job(), &lost);
    assert_eq!((first.target, first.counters.lapses, first.counters.spent), (State::Pending, 1, 0));
    assert!(first.flags.ambiguous);
    let twice = Job { counters: Counters { lapses: 2, ..Counters::default() }, ..job() };
    let third = decided(&twice, &lost);
    assert_eq!((third.target, third.reason.as_ref()), (State::Deferred, "worker lost 3 times"));
    let ask = policy(OnAmbiguous::Ask, None);
    assert_eq!(decide(&job(), &lost, &ask, Seen::default(), NOW_MS, DRAWS).target, State::Unconfirmed);
}

/// failures 50: a deploy does not use up attempts, and says nothing about the provider.
#[test]
fn an_attempt_that_a_shutdown_cut_short_is_in_doubt_and_counts_against_nobody() {
    let cut = Outcome::ambiguous(crate::outcome::SHUTDOWN);
    let decision = decided(&job(), &cut);
    let counters = Counters { attempts: 1, ..Counters::default() };
    assert_eq!((decision.target, decision.delay_ms, decision.counters), (State::Pending, 0, counters));
    assert!(decision.flags.ambiguous && decision.signal == Signal::None);
    let ask = policy(OnAmbiguous::Ask, None);
    assert_eq!(decide(&job(), &cut, &ask, Seen::default(), NOW_MS, DRAWS).target, State::Unconfirmed);
}

#[test]
fn a_lease_lost_before_its_start_goes_back_unspent() {
    let unsent = Outcome::NotSent { reason: crate::outcome::WORKER_LOST.into() };
    let decision = decide(&job(), &unsent, &policy(OnAmbiguous::Ask, None), Seen::default(), NOW_MS, DRAWS);
    assert_eq!((decision.target, decision.counters.spent, decision.counters.lapses), (State::Queued, 0, 1));
    assert!(!decision.flags.ambiguous && decision.refund);
    let tried = Job { counters: Counters { attempts: 1, ..Counters::default() }, ..job() };
    assert_eq!(decided(&tried, &unsent).target, State::Pending);
}

#[test]
fn a_refused_sender_fails_the_first_and_keeps_those_behind_the_hold() {
    let refused = Outcome::SenderRefused { reason: "http 401".into() };
    assert_eq!(decided(&job(), &refused).target, State::Failed);
    let seen = Seen { hold: Some(HoldCause::Suspect), probe: None };
    let behind = decide(&job(), &refused, &policy(OnAmbiguous::Ask, None), seen, NOW_MS, DRAWS);
    assert_eq!((behind.target, behind.counters.spent), (State::Pending, 0));
}

#[test]
fn a_failed_probe_of_an_outage_spends_nothing_and_widens_the_wait() {
    let seen = Seen { probe: Some(Probe { cause: HoldCause::Outage, interval_ms: 4_000 }), hold: None };
    let decision = decide(&job(), &transient(), &policy(OnAmbiguous::Ask, None), seen, NOW_MS, DRAWS);
    assert_eq!((decision.counters.spent, decision.hold.map(|hold| hold.probe_ms)), (0, Some(8_000)));
}

#[test]
fn a_cancelled_job_ends_unconfirmed_where_any_attempt_was_ambiguous() {
    assert_eq!(decided(&job(), &transient()).cancelled_target, State::Cancelled);
    let doubtful = Job { flags: Flags { ambiguous: true, ..Flags::default() }, ..job() };
    assert_eq!(decided(&doubtful, &transient()).cancelled_target, State::Unconfirmed);
    assert_eq!(
        decided(&doubtful, &Outcome::Accepted { message_id: None }).cancelled_target,
        State::Submitted
    );
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let wait = prop::option::of(any::<u64>());
    (0usize..12, wait).prop_map(|(kind, retry_after_ms)| match kind {
        0 => Outcome::Accepted { message_id: None },
        1 => Outcome::Throttled { retry_after_ms, scope: Scope::Credential },
        2 => Outcome::QuotaSpent { retry_after_ms },
        3 => Outcome::Transient { reason: "x".into(), retry_after_ms },
        4 => Outcome::Ambiguous { reason: "x".into(), retry_after_ms },
        5 => Outcome::Terminal { reason: "x".into() },
        6 => Outcome::SenderRefused { reason: "x".into() },
        7 => Outcome::Unknown { code: "x".into(), retry_after_ms },
        9 => Outcome::Invalid { reason: "payload".into() },
        8 => Outcome::ambiguous(crate::outcome::WORKER_LOST),
        10 => Outcome::ambiguous(crate::outcome::SHUTDOWN),
        _ => Outcome::NotSent { reason: "x".into() },
    })
}

prop_compose! {
    fn any_job()(
        spent in 0u8..12, throttles in any::<u16>(), lapses in 0u8..4, run in any::<u8>(), attempts in any::<u16>(),
        ambiguous in any::<bool>(), expires in prop::option::of(0u64..10_000_000), since in prop::option::of(0u64..100_000_000),
    ) -> Job {
        Job {
            counters: Counters { spent, throttles, lapses, run, attempts },
            flags: Flags { ambiguous, ..Flags::default() },
            expires_at_ms: expires.map(|ms| NOW_MS + ms),
            throttled_since_ms: since.map(|ms| NOW_MS - ms),
            sent_since_ms: since.map(|ms| NOW_MS - ms),
            ..job()
        }
    }
}

proptest! {
    /// What holds for every job and outcome there is.
    #[test]
    fn the_rules_hold_everywhere(
        job in any_job(), outcome in any_outcome(), ask in any::<bool>(), dedup in any::<bool>(),
        spread in 0.0..1.0f64, jitter in 0.0..1.0f64,
    ) {
        let on_ambiguous = if ask { OnAmbiguous::Ask } else { OnAmbiguous::Retry };
        let policy = policy(on_ambiguous, dedup.then_some(86_400_000));
        let draws = Draws { spread, jitter };
        let decision = decide(&job, &outcome, &policy, Seen::default(), NOW_MS, draws);

        prop_assert!(decision.target != State::InFlight && decision.target != State::Expired);
        prop_assert_eq!(decision.target == State::Submitted, matches!(outcome, Outcome::Accepted { .. }));
        let never = matches!(outcome, Outcome::Terminal { .. } | Outcome::SenderRefused { .. } | Outcome::Invalid { .. });
        prop_assert_eq!(decision.target == State::Failed, never);
        prop_assert!(decision.target.is_waiting() || decision.delay_ms == 0);
        if let Some(at_ms) = job.expires_at_ms {
            prop_assert!(NOW_MS + decision.delay_ms <= at_ms.max(NOW_MS));
        }
        let spends = decision.counters.spent > job.counters.spent;
        let may_spend = matches!(outcome, Outcome::Transient { .. } | Outcome::Ambiguous { .. } | Outcome::Unknown { .. });
        prop_assert!(may_spend || !spends);
        prop_assert!(decision.counters.lapses == job.counters.lapses || outcome.is_lapse());
        prop_assert!(decision.flags.ambiguous >= job.flags.ambiguous, "doubt is never forgotten");
        if decision.flags.ambiguous && !matches!(outcome, Outcome::Accepted { .. }) {
            prop_assert_eq!(decision.cancelled_target, State::Unconfirmed);
        }
        if matches!(outcome, Outcome::Ambiguous { .. }) && ask && !dedup {
            prop_assert_eq!(decision.target, State::Unconfirmed, "never sent twice where nobody can tell");
        }
    }
}
