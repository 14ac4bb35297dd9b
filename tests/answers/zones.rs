//! Where a worker stands on the globe changes nothing about when it comes back.

use crate::support::*;
use paceline_core::State;
use paceline_tests::peer::{Act, Peer};

/// The same instant in the form of today and in the one that names no zone at all.
const INSTANT: [&str; 2] = ["Sat, 06 Nov 2094 08:49:37 GMT", "Sat Nov  6 08:49:37 2094"];
const INSTANT_MS: u64 = 3_939_871_777_000;

/// failures 7: a date is UTC in every zone. The last one needs no zone files on the machine to be another zone.
#[tokio::test(flavor = "multi_thread")]
async fn a_date_is_the_same_wait_wherever_the_worker_runs() {
    for zone in ["America/New_York", "Asia/Kolkata", "XXX-9:30"] {
        let peer = Peer::start(|heard| Act::wait(429, INSTANT[usize::from(heard.path == "/1")])).await;
        let stage = before(&peer, &lanes(&numbered(2))).await;
        for i in 0..2 {
            push_to(&stage, &format!("lane-{i}"), &format!("/{i}")).await;
        }
        let process = stage.process_with(&[("TZ", zone)]);
        for (i, instant) in INSTANT.into_iter().enumerate() {
            let stored = await_attempt(&stage, &format!("lane-{i}"), "job").await;
            assert_eq!(stored.state, Some(State::Pending), "{zone}: {stored:?}");
            let attempt = last(&stored);
            let read_ms = attempt.at_ms + attempt.retry_after_ms.expect("the date was understood");
            assert!(read_ms.abs_diff(INSTANT_MS) < 60_000, "{zone}: {instant} became {read_ms}");
        }
        process.kill();
    }
}
