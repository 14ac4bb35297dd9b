//! Transports that break their contract: failures 53. The class goes on, and each broken attempt says why.

use crate::support::*;
use futures_util::future::pending;
use paceline_core::transport::Answers;
use paceline_core::{Answer, Outgoing, State, Transport};
use paceline_tests::stage::{Stage, http};
use std::sync::{Arc, Once};
use std::time::Duration;

/// What is wrong with a transport.
#[derive(Clone, Copy)]
enum Flaw {
    /// It panics before it returns a future.
    PanicsAtOnce,
    /// Its future panics.
    PanicsLater,
    /// It returns no answer.
    AnswersNothing,
    /// It never returns, deadline or not.
    NeverEnds,
}

/// Speaks HTTP, except about one payload.
struct Flawed {
    http: Arc<dyn Transport>,
    flaw: Flaw,
}

impl Transport for Flawed {
    fn send<'a>(&'a self, jobs: &'a [Outgoing]) -> Answers<'a> {
        let body = String::from_utf8_lossy(&jobs[0].request.body);
        if !body.contains("bulk:50") {
            return self.http.send(jobs);
        }
        match self.flaw {
            Flaw::PanicsAtOnce => panic!("byte index {} is not a char boundary", jobs.len()),
            Flaw::PanicsLater => Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                vec![jobs[jobs.len()].clone()].into_iter().map(|_| never()).collect()
            }),
            Flaw::AnswersNothing => Box::pin(async { Vec::new() }),
            Flaw::NeverEnds => Box::pin(pending()),
        }
    }
}

fn never() -> Answer {
    unreachable!("the index above is out of bounds")
}

/// The wanted panics leave no trace: to find and print one takes longer than a lease here.
fn without_traces_of_wanted_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.to_string();
            if !["is not a char boundary", "index out of bounds"].iter().any(|wanted| text.contains(wanted)) {
                usual(panic);
            }
        }));
    });
}

/// Sends 101 jobs, one of which the transport cannot bear; gives back how that one's last attempt ended.
async fn one_among_a_hundred(flaw: Flaw) -> String {
    without_traces_of_wanted_panics();
    let settings = with_class("max_spent = 2").replace("deadline_ms = 2000", "deadline_ms = 1000");
    let stage = Stage::new(open_door(), &settings).await;
    let worker = stage.worker_with(|class| Arc::new(Flawed { http: http(&stage.config, class), flaw }));
    stage.push(BULK, 101).await;
    let depths = stage.await_drained(BULK).await;
    assert_eq!((depths.of(State::Submitted), depths.of(State::Deferred)), (100, 1), "{depths:?}");
    assert_delivered_once(&stage, 100);
    let dead = jobs_in(&stage, State::Deferred).await.remove(0);
    assert_eq!((dead.key.as_str(), dead.counters.spent, dead.counters.lapses), ("bulk:50", 2, 0));
    assert!(dead.flags.ambiguous, "nobody knows what left before it broke");
    push_until_taken(&stage, &stage.store, 101..103).await;
    stage.await_count(BULK, State::Submitted, 102).await;
    assert_eq!(worker.health.problem(), None);
    worker.stopped().await;
    let last = dead.history.last().expect("its attempts are on record");
    format!("{} · {} · {}", last.code, last.reason, last.snippet)
}

#[tokio::test]
async fn a_transport_that_panics_over_one_payload_sends_the_other_hundred() {
    let ended = one_among_a_hundred(Flaw::PanicsAtOnce).await;
    assert_eq!(
        ended,
        "panic · 2 attempts spent: panic · the transport panicked: byte index 1 is not a char boundary"
    );
}

#[tokio::test]
async fn a_future_that_panics_over_one_payload_sends_the_other_hundred() {
    let ended = one_among_a_hundred(Flaw::PanicsLater).await;
    assert!(
        ended.starts_with("panic · 2 attempts spent: panic · the transport panicked: index out of bounds"),
        "{ended}"
    );
}

#[tokio::test]
async fn a_transport_that_answers_short_costs_only_the_job_it_forgot() {
    let ended = one_among_a_hundred(Flaw::AnswersNothing).await;
    assert_eq!(ended, "transport · 2 attempts spent: transport · no answer for this job");
}

#[tokio::test]
async fn a_transport_that_never_ends_is_dropped_before_its_lease_is_in_danger() {
    let ended = one_among_a_hundred(Flaw::NeverEnds).await;
    assert_eq!(ended, "deadline · 2 attempts spent: deadline · the transport overran its deadline");
}
