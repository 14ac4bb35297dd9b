//! A worker dies at each named step of an attempt; another takes over. The table of promises, cell by cell: nothing is
//! lost, and nothing is delivered twice, whether the provider deduplicates or a person is asked.

use crate::killed::ended;
use crate::support::*;
use paceline_core::State;
use paceline_rehearsal::Scenario;
use paceline_tests::stage::{ONE_CLASS, Stage};

const JOBS: u64 = 30;

/// Dies at the `n`th time it gets there; the other worker is there from then on.
async fn dies_at(step: &str, n: usize, deduplicates: bool) -> Stage {
    let scenario = Scenario { deduplicates, ..slow(20) };
    let settings = with_class("concurrency = 8");
    let settings = if deduplicates { settings } else { forgetful(&settings) };
    let stage = Stage::new(scenario, &settings).await;
    stage.push(BULK, JOBS as usize).await;
    let dying = stage.process_with(&[("PACELINE_DIE_AT", &format!("{step}:{n}"))]);
    assert!(!ended(dying).await, "it dies at {step}");
    let other = stage.process();
    stage.await_drained(BULK).await;
    drop(other);
    stage
}

async fn where_it_deduplicates(step: &str, n: usize) {
    let stage = dies_at(step, n, true).await;
    let depths = stage.depths(BULK).await;
    assert_eq!((depths.of(State::Submitted), total(&depths)), (JOBS, JOBS), "{step}: {depths:?}");
    assert_delivered_once(&stage, JOBS);
    for job in jobs_in(&stage, State::Submitted).await {
        assert_eq!(job.counters.spent, 0, "{step}: {} {:?}", job.key, counts(&stage).await);
    }
}

/// What was started and not told is a person's; whatever is submitted was delivered, and nothing went out twice.
async fn where_a_person_is_asked(step: &str, n: usize) {
    let stage = dies_at(step, n, false).await;
    let depths = stage.depths(BULK).await;
    let (submitted, unconfirmed) = (depths.of(State::Submitted), depths.of(State::Unconfirmed));
    assert_eq!((submitted + unconfirmed, total(&depths)), (JOBS, JOBS), "{step}: {depths:?}");
    assert!(unconfirmed <= 8, "{step}: {unconfirmed} unconfirmed, at most eight were started");
    let summary = stage.ledger().summary;
    assert_eq!(summary.duplicates, 0, "{step}: {summary:?}");
    assert!((submitted..=JOBS).contains(&summary.delivered), "{step}: {summary:?}");
    if step == "claimed" {
        assert_eq!(unconfirmed, 0, "no byte was written");
    }
}

/// Every step on a Redis, a provider and two workers of its own.
macro_rules! each_step {
    ($($step:ident $n:literal;)+) => {
        mod deduplicated {
            $(#[tokio::test]
            async fn $step() {
                super::where_it_deduplicates(stringify!($step), $n).await;
            })+
        }
        mod asked {
            $(#[tokio::test]
            async fn $step() {
                super::where_a_person_is_asked(stringify!($step), $n).await;
            })+
        }
    };
}

each_step! {
    claimed 1;
    started 2;
    sending 11;
    answered 11;
    classified 11;
    settling 3;
    settled 3;
}

#[test]
fn every_job_of_these_tests_has_the_usual_settings() {
    assert!(ONE_CLASS.contains("[class.bulk]"));
}
