//! `Retry-After` in every form a remote side was seen to send it: never an error, never a lost attempt, never too
//! early.

use crate::support::*;
use bytes::Bytes;
use paceline_core::State;
use paceline_store::{NewJob, Stored};
use paceline_tests::peer::{Act, Heard, Peer, answer};
use paceline_tests::stage::{InProcess, Stage};
use std::time::{Duration, Instant};

/// A job of its own for each answer, in a class of its own: one hold must not delay the others.
struct Told {
    stage: Stage,
    peer: Peer,
    _worker: InProcess,
}

impl Told {
    /// The ith job gets the ith answer again and again.
    async fn for_ever(answers: Vec<Bytes>, backoff_ms: u64) -> Self {
        Self::new(answers.len(), backoff_ms, move |i, _| Act::Say(answers[i].clone())).await
    }

    /// The ith job gets the ith answer first, and is then accepted.
    async fn once(answers: Vec<Bytes>) -> Self {
        let n = answers.len();
        let first = move |i: usize, heard: &Heard| match heard.nth {
            1 => Act::Say(answers[i].clone()),
            _ => Act::accept(),
        };
        Self::new(n, 20, first).await
    }

    async fn new(
        n: usize,
        backoff_ms: u64,
        act: impl Fn(usize, &Heard) -> Act + Send + Sync + 'static,
    ) -> Self {
        let base = format!("backoff_base_ms = {backoff_ms}");
        let cap = format!("backoff_cap_ms = {}", backoff_ms * 10);
        let changes = [("backoff_base_ms = 20", base.as_str()), ("backoff_cap_ms = 200", cap.as_str())];
        let lane = |heard: &Heard| heard.path[1..].parse().expect("a lane's number");
        let peer = Peer::start(move |heard| act(lane(heard), heard)).await;
        let stage = before(&peer, &changed(&lanes(&numbered(n)), &changes)).await;
        for i in 0..n {
            push_to(&stage, &format!("lane-{i}"), &format!("/{i}")).await;
        }
        let worker = stage.worker();
        Self { stage, peer, _worker: worker }
    }

    /// The ith job after its first attempt.
    async fn after_one(&self, i: usize) -> Stored {
        await_attempt(&self.stage, &format!("lane-{i}"), "job").await
    }

    /// Waits until the ith job is submitted; when its requests arrived.
    async fn delivered(&self, i: usize) -> Vec<Instant> {
        await_state(&self.stage, &format!("lane-{i}"), "job", State::Submitted).await;
        self.arrivals(i)
    }

    fn arrivals(&self, i: usize) -> Vec<Instant> {
        let path = format!("/{i}");
        self.peer.heard().iter().filter(|heard| heard.path == path).map(|heard| heard.at).collect()
    }
}

/// A throttle with this `Retry-After`, byte for byte behind the colon.
fn throttles<S: AsRef<str>>(values: &[S]) -> Vec<Bytes> {
    values.iter().map(|value| answer(429, &[("retry-after", value.as_ref())], "{}")).collect()
}

/// How long a job that was tried waits, from the end of that attempt on.
fn delay_ms(stored: &Stored) -> u64 {
    stored.score_ms - last(stored).at_ms
}

fn is_throttled_once(stored: &Stored) -> bool {
    let counters = job_of(stored).counters;
    stored.state == Some(State::Pending)
        && (counters.spent, counters.throttles, counters.attempts) == (0, 1, 1)
}

/// failures 1, 4, 5: whatever is a wait is waited, in pending, without slot or lease; the hold of the sender is
/// clamped to a quarter of an hour, the job's own wait to 30 days.
#[tokio::test]
async fn a_named_wait_is_never_cut_short() {
    const DAYS_30: u64 = 30 * 86_400_000;
    let waits = [
        ("299.997", 299_997),
        ("61", 61_000),
        ("75", 75_000),
        ("300", 300_000),
        ("3600", 3_600_000),
        ("31536000", 31_536_000_000),
        ("2147483648", 2_147_483_648_000),
        ("4294967296", 4_294_967_296_000),
        ("9999999999", 9_999_999_999_000),
        ("18446744073709551616", u64::MAX),
    ];
    let told = Told::for_ever(throttles(&waits.map(|(text, _)| text)), 20).await;
    for (i, (text, asked_ms)) in waits.into_iter().enumerate() {
        let stored = told.after_one(i).await;
        assert!(is_throttled_once(&stored), "{text}: {stored:?}");
        assert_eq!(last(&stored).retry_after_ms, Some(asked_ms), "{text} is shown as it was asked");
        let most_ms = asked_ms.saturating_add(5_000).min(DAYS_30) + 30_000;
        assert!(
            (asked_ms.min(DAYS_30)..most_ms).contains(&delay_ms(&stored)),
            "{text}: {}",
            delay_ms(&stored)
        );
        let depths = told.stage.depths(&format!("lane-{i}")).await;
        assert_eq!((depths.of(State::Pending), depths.of(State::InFlight)), (1, 0), "{text}");
        let until_ms =
            depths.holds[1].as_ref().and_then(|hold| hold.until_ms).expect("its credential is held");
        assert!(until_ms - depths.now_ms <= 900_000, "{text} holds for {}", until_ms - depths.now_ms);
        assert_eq!(told.arrivals(i).len(), 1, "{text}");
    }
}

/// failures 1: a fraction is rounded up and waited out, and the job is delivered.
#[tokio::test]
async fn a_fraction_of_a_second_is_waited_out() {
    let waits = [("0.503", 503), ("0.1291", 130), (" 2.5 ", 2_500)];
    let told = Told::once(throttles(&waits.map(|(text, _)| text))).await;
    for (i, (text, asked_ms)) in waits.into_iter().enumerate() {
        let arrivals = told.delivered(i).await;
        assert_eq!(arrivals.len(), 2, "{text:?}");
        assert!(arrivals[1] - arrivals[0] >= Duration::from_millis(asked_ms), "{text:?}: {arrivals:?}");
    }
}

/// What is no wait in any grammar: signs, exponents, words, nothing.
const NO_WAITS: [&str; 12] =
    ["1e3", "1e10000", "nan", "inf", "Infinity", "-1", "-1.5", "+5", "", " ", " \t ", "soon"];

/// failures 1, 2, 11: malformed, blank and absent are one case: own backoff, nothing spent, nobody held.
#[tokio::test]
async fn what_is_no_wait_equals_no_header() {
    let mut answers = throttles(&NO_WAITS);
    answers.push(answer(429, &[], "{}"));
    let n = answers.len();
    let told = Told::for_ever(answers, 3_600_000).await;
    for i in 0..n {
        let stored = told.after_one(i).await;
        assert!(is_throttled_once(&stored), "{i}: {stored:?}");
        assert_eq!(last(&stored).retry_after_ms, None, "{i}");
        assert!(delay_ms(&stored) < 3_630_000, "own backoff, at most its window: {}", delay_ms(&stored));
        assert_eq!(holds(&told.stage, &format!("lane-{i}")).await, [None, None], "{i}");
    }
}

/// failures 1, 2, 11: and none of them, nor a date long past, costs the job anything.
#[tokio::test]
async fn no_header_can_cost_a_job_its_delivery() {
    let mut answers = throttles(&NO_WAITS);
    answers.extend(throttles(&["Wed, 21 Oct 2015 07:28:00 GMT", "0", "00"]));
    answers.push(answer(503, &[("retry-after", "-1")], "{}"));
    answers.push(answer(429, &[], ""));
    let n = answers.len();
    let told = Told::once(answers).await;
    for i in 0..n {
        assert_eq!(told.delivered(i).await.len(), 2, "{i}");
    }
}

/// failures 2, 11: no wait, a wait of zero and a wait that is over already are no reason to come back at once.
#[tokio::test]
async fn a_throttle_without_a_wait_is_no_hot_loop() {
    let mut answers = throttles(&["", "0", "Wed, 21 Oct 2015 07:28:00 GMT"]);
    answers.push(answer(429, &[], "{}"));
    let n = answers.len();
    let told = Told::for_ever(answers, 500).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for i in 0..n {
        // With full jitter over a window of 0.5 s that doubles, ten are beyond any luck.
        let arrivals = told.arrivals(i).len();
        assert!((1..=15).contains(&arrivals), "{i}: {arrivals} requests in 1.5 s");
    }
}

/// failures 8: the same instant three ways is the same wait, measured against the response's own clock.
#[tokio::test]
async fn all_three_forms_of_a_date_are_one_wait() {
    let instants =
        ["Sat, 06 Nov 2027 08:49:37 GMT", "Saturday, 06-Nov-27 08:49:37 GMT", "Sat Nov  6 08:49:37 2027"];
    let date = ("date", "Sat, 06 Nov 2027 08:48:07 GMT");
    let answers = instants.map(|instant| answer(429, &[date, ("retry-after", instant)], "{}"));
    let told = Told::for_ever(answers.to_vec(), 20).await;
    for (i, instant) in instants.into_iter().enumerate() {
        let stored = told.after_one(i).await;
        assert!(is_throttled_once(&stored), "{instant}: {stored:?}");
        assert_eq!(last(&stored).retry_after_ms, Some(90_000), "{instant}");
        assert!(delay_ms(&stored) >= 90_000, "{instant}: {}", delay_ms(&stored));
    }
}

/// failures 10: the wait counts on every answer that is not final, and on no other.
#[tokio::test]
async fn a_wait_counts_on_every_answer_that_is_not_final() {
    let said = [
        (503, "120", State::Pending, 0),
        (529, "120", State::Pending, 0),
        (429, "120", State::Pending, 0),
        (408, "10", State::Pending, 1),
        (425, "10", State::Pending, 1),
        (500, "10", State::Pending, 1),
        (418, "10", State::Pending, 1),
        (400, "10", State::Failed, 0),
        (202, "10", State::Submitted, 0),
    ];
    let answers = said.map(|(status, wait, ..)| answer(status, &[("retry-after", wait)], "{}"));
    let told = Told::for_ever(answers.to_vec(), 20).await;
    for (i, (status, wait, state, spent)) in said.into_iter().enumerate() {
        let stored = told.after_one(i).await;
        assert_eq!((stored.state, job_of(&stored).counters.spent), (Some(state), spent), "{status}");
        let asked_ms = wait.parse::<u64>().unwrap() * 1_000;
        assert!(state != State::Pending || delay_ms(&stored) >= asked_ms, "{status}: {}", delay_ms(&stored));
    }
    assert_eq!(told.peer.heard().len(), said.len(), "one request each, and none repeated for its header");
}

/// failures 4: an enormous wait is bounded by the job's own expiry, so that it ends when it should.
#[tokio::test]
async fn a_job_that_expires_before_its_wait_is_looked_at_when_it_expires() {
    let peer = Peer::start(|_| Act::wait(429, "9999999999")).await;
    let stage = before(&peer, &lanes(&["lane"])).await;
    // Any answer tells Redis's clock.
    let expires_at_ms = stage.depths("lane").await.now_ms + 3_600_000;
    push(&stage, "lane", NewJob { expires_at_ms, ..paceline_tests::store::job("job") }).await;
    let worker = stage.worker();
    let stored = await_attempt(&stage, "lane", "job").await;
    assert!(is_throttled_once(&stored), "{stored:?}");
    assert!((expires_at_ms..expires_at_ms + 60_000).contains(&stored.score_ms), "{stored:?}");
    worker.stopped().await;
}
