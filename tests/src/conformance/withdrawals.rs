//! cancel, erase and sweep: what takes jobs away.

use super::bench::Bench;
use super::ends::{Ending, end};
use super::pushes::one_everywhere;
use super::scene::{HOUR_MS, Scene};
use crate::store::job;
use paceline_core::State;
use paceline_store::*;

pub async fn a_cancel_withdraws_what_waits_marks_what_flies_and_leaves_the_rest<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    one_everywhere(&mut scene).await;
    let keys: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).chain(["nobody"]).collect();
    let words = |waiting: fn(State) -> Cancelled| {
        State::ALL.into_iter().map(move |state| match state {
            State::Queued | State::Pending => waiting(State::Cancelled),
            State::InFlight => Cancelled::Marked,
            over => Cancelled::Over(over),
        })
    };
    let missing = [Cancelled::Missing];
    let first: Vec<_> = words(Cancelled::Cancelled).chain(missing).collect();
    assert_eq!(scene.cancel(&keys).await, first);
    let again: Vec<_> = words(Cancelled::Over).chain(missing).collect();
    assert_eq!(scene.cancel(&keys).await, again);
    assert_eq!(scene.cancel(&[]).await, []);
}

pub async fn a_cancelled_job_that_may_have_been_accepted_is_unconfirmed<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["a", "b"].map(|key| NewJob { document: vec![b'x'; 5_000], ..job(key) })).await;
    let batch = scene.claim(2).await;
    let again = |key: &str| end(&batch, key, State::Pending).after(HOUR_MS);
    scene.settle(&[again("a").ambiguous(), again("b")]).await;
    let words = [Cancelled::Cancelled(State::Unconfirmed), Cancelled::Cancelled(State::Cancelled)];
    assert_eq!(scene.cancel(&["a", "b"]).await, words);
    assert_eq!([scene.job("a").document.len(), scene.job("b").document.len()], [5_000, 0]);
}

pub async fn an_erased_job_keeps_its_receipt_and_so_its_key<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    one_everywhere(&mut scene).await;
    for state in State::ALL {
        let word = match state {
            State::InFlight => Erased::InFlight,
            State::Queued | State::Pending | State::Deferred | State::Unconfirmed => {
                Erased::Erased(State::Cancelled)
            }
            over => Erased::Erased(over),
        };
        assert_eq!(scene.erase(state.as_str()).await, word, "{state}");
        assert_eq!(scene.erase(state.as_str()).await, word, "{state} again");
        if let Erased::Erased(state_now) = word {
            let other = NewJob { document: b"other".to_vec(), ..job(state.as_str()) };
            let words = [Pushed::Duplicate(state_now), Pushed::Conflict(state_now)];
            assert_eq!(scene.push(&[job(state.as_str()), other]).await, words);
        }
    }
    assert_eq!(scene.erase("nobody").await, Erased::Missing);
}

pub async fn an_erase_removes_every_word_of_the_content<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[NewJob { document: vec![b'x'; 5_000], campaign: "launch".into(), ..job("a") }]).await;
    let batch = scene.claim(1).await;
    scene.settle(&[end(&batch, "a", State::Deferred)]).await;
    scene.erase("a").await;
    let erased = scene.job("a");
    assert_eq!((erased.document.len(), erased.history.attempts().len()), (0, 0));
    assert_eq!((erased.campaign.as_str(), erased.counters.attempts), ("launch", 1), "numbers and names stay");
}

pub async fn a_sweep_forgets_the_oldest_in_chunks<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let names = ["a", "b", "c", "d", "e"];
    scene.push(&names.map(|key| NewJob { document: vec![b'x'; 5_000], ..job(key) })).await;
    let batch = scene.claim(5).await;
    scene.settle(&names[..4].iter().map(|key| end(&batch, key, State::Failed)).collect::<Vec<_>>()).await;
    scene.pass(5).await;
    scene.settle(&[end(&batch, "e", State::Failed)]).await;
    assert_eq!(scene.sweep(State::Failed, HOUR_MS, 3).await, 0, "kept for an hour");
    scene.pass(2).await;
    assert_eq!(scene.sweep(State::Failed, 1, 3).await, 3);
    assert_eq!(scene.place("e").0, State::Failed);
    assert_eq!(scene.sweep(State::Failed, 1, 3).await, 2);
    assert_eq!(scene.sweep(State::Failed, 1, 3).await, 0);
}

/// Retention is for what is over. Nobody's mistake sweeps a job that waits, for a worker or for a person.
pub async fn a_sweep_touches_nothing_that_waits<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    one_everywhere(&mut scene).await;
    scene.pass(2).await;
    for state in State::ALL {
        assert_eq!(scene.sweep(state, 0, 10).await, usize::from(state.is_done()), "{state}");
    }
}

/// Four of them: held, back in the queue by its own settle, believed to wait, and of another birth.
pub async fn a_job_that_is_held_and_believed_to_wait_is_doubted<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a"), job("b"), job("c"), job("d")]).await;
    let batch = scene.claim(2).await;
    scene.settle(&[end(&batch, "b", State::Pending)]).await;
    let of = |key: &str, deadline_ms: u64| (key.to_owned(), scene.job(key).birth, deadline_ms);
    let later_ms = batch.deadline_ms + 1;
    let held = [
        of("a", batch.deadline_ms),
        of("b", batch.deadline_ms),
        of("c", later_ms),
        ("d".to_owned(), [9; 8], later_ms),
    ];
    let expected = [Doubted::Held, Doubted::Elsewhere, Doubted::Doubted, Doubted::Elsewhere];
    assert_eq!(bench.store().doubt(&scene.class, &held).await.unwrap(), expected);
    for (key, state, ambiguous) in
        [("b", State::Pending, false), ("c", State::Unconfirmed, true), ("d", State::Queued, false)]
    {
        let stored = bench.store().get(&scene.class, key).await.unwrap().expect("it is there");
        let Record::Job(job) = &stored.record else { panic!("{stored:?}") };
        assert_eq!((stored.state, job.flags.ambiguous), (Some(state), ambiguous), "{key}");
    }
    assert_eq!(
        bench.store().doubt(&scene.class, &held[2..3]).await.unwrap(),
        [Doubted::Elsewhere],
        "a repeat"
    );
}

pub async fn a_person_says_what_became_of_a_job<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&["a", "b", "c"].map(|key| NewJob { document: vec![b'x'; 5_000], ..job(key) })).await;
    let batch = scene.claim(3).await;
    let ends = ["a", "b", "c"].map(|key| end(&batch, key, State::Unconfirmed).ambiguous());
    scene.settle(&ends).await;
    let says = |key: &str, accepted: bool| Confirmation {
        key: key.into(),
        accepted,
        line: b"{\"at_ms\":7,\"outcome\":\"accepted\",\"rule\":\"person:ada\"}\n".to_vec(),
    };
    let words = [says("a", true), says("b", false), says("nobody", true)];
    let expected =
        [Confirmed::Confirmed(State::Submitted), Confirmed::Confirmed(State::Pending), Confirmed::Missing];
    assert_eq!(bench.store().confirm(&scene.class, &words).await.unwrap(), expected);
    let repeat = [Confirmed::Moved(State::Submitted), Confirmed::Moved(State::Pending), Confirmed::Missing];
    assert_eq!(bench.store().confirm(&scene.class, &words).await.unwrap(), repeat, "a repeat");
    for (key, state, document, attempts) in [("a", State::Submitted, 0, 1), ("b", State::Pending, 5_000, 2)] {
        let stored = bench.store().get(&scene.class, key).await.unwrap().expect("it is there");
        let Record::Job(job) = &stored.record else { panic!("{stored:?}") };
        let last = job.history.last().map(|attempt| attempt.rule.as_str());
        assert_eq!(
            (stored.state, job.document.len(), last),
            (Some(state), document, Some("person:ada")),
            "{key}"
        );
        assert_eq!(
            (job.history.attempts().len(), job.flags.ambiguous, job.sent_since_ms.is_none()),
            (attempts, false, key == "b")
        );
    }
}
