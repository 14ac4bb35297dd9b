//! get, depths and list: what only reads. A scene reads with them after every act; here is what it cannot see.

use super::bench::Bench;
use super::scene::{HOUR_MS, Scene, fresh_class};
use crate::store::job;
use paceline_core::State;
use paceline_store::*;

pub async fn a_class_that_never_was_is_empty<B: Bench>(bench: B) {
    let class = fresh_class();
    let depths = bench.store().depths(&class).await.unwrap();
    assert_eq!((depths.counts, depths.scheduled, depths.holds), ([0; 9], 0, vec![None, None]));
    assert_eq!((depths.oldest_due_ms, depths.oldest_pending_ms), (None, None));
    assert_eq!(bench.store().get(&class, "a").await, Ok(None));
    assert_eq!(bench.store().list(&class, State::Queued, &Cursor::default(), 10).await, Ok(Vec::new()));
}

pub async fn waiting_scheduled_and_ages_are_separate_numbers<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let due_ms = scene.now_ms() + HOUR_MS;
    scene.push(&[job("a"), NewJob { at_ms: due_ms, ..job("later") }]).await;
    scene.pass(10).await;
    let depths = bench.store().depths(&scene.class).await.unwrap();
    assert_eq!((depths.waiting(), depths.of(State::Queued), depths.scheduled), (2, 2, 1));
    assert!(depths.oldest_due_ms.is_some_and(|age_ms| (10..HOUR_MS).contains(&age_ms)));
    assert_eq!(depths.oldest_pending_ms, None);
    scene.claim(1).await;
    assert_eq!(bench.store().depths(&scene.class).await.unwrap().oldest_due_ms, None, "the other is not due");
}

/// Pages of a list, until there are no more; `between` acts behind each page.
async fn pages<B: Bench>(
    bench: &B,
    class: &ClassRef,
    max: usize,
    mut between: impl AsyncFnMut(usize),
) -> Vec<String> {
    let (mut cursor, mut keys) = (Cursor::default(), Vec::new());
    loop {
        let page = bench.store().list(class, State::Queued, &cursor, max).await.unwrap();
        let Some(last) = page.last() else { return keys };
        cursor = Cursor { score_ms: last.score_ms, key: last.key.clone() };
        keys.extend(page.into_iter().map(|entry| entry.key));
        between(keys.len()).await;
    }
}

/// Keys in the order of their bytes, all due at one moment.
const ONE_MOMENT: [&str; 9] = ["A", "B", "Z", "a", "aa", "b", "z", "ä", "鍵"];

pub async fn pages_go_on_within_one_score_by_the_bytes_of_the_key<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let at_ms = scene.now_ms() + HOUR_MS;
    let earlier = NewJob { at_ms: at_ms - 1, ..job("x") };
    scene.push(&[earlier, NewJob { at_ms: at_ms + 1, ..job("0") }]).await;
    scene.push(&ONE_MOMENT.map(|key| NewJob { at_ms, ..job(key) })).await;
    let all: Vec<&str> = ["x"].into_iter().chain(ONE_MOMENT).chain(["0"]).collect();
    for max in 1..=12 {
        assert_eq!(pages(&bench, &scene.class, max, async |_| ()).await, all, "pages of {max}");
    }
    assert_eq!(bench.store().list(&scene.class, State::Queued, &Cursor::default(), 0).await, Ok(Vec::new()));
    let behind = Cursor { score_ms: at_ms + 1, key: "0".into() };
    assert_eq!(bench.store().list(&scene.class, State::Queued, &behind, 10).await, Ok(Vec::new()));
}

pub async fn entries_that_leave_meanwhile_do_not_shift_the_pages<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    let at_ms = scene.now_ms() + HOUR_MS;
    scene.push(&ONE_MOMENT.map(|key| NewJob { at_ms, ..job(key) })).await;
    let class = scene.class.clone();
    // Two seen ones leave, the cursor's own among them, and one that is still to come.
    let leave = async |seen: usize| {
        let gone: &[&str] = if seen == 3 { &["A", "Z", "aa"] } else { &[] };
        let gone: Vec<String> = gone.iter().map(|&key| key.to_owned()).collect();
        bench.store().cancel(&class, &gone).await.unwrap();
    };
    let keys = pages(&bench, &class, 3, leave).await;
    assert_eq!(keys, ["A", "B", "Z", "a", "b", "z", "ä", "鍵"]);
}

/// A whole campaign may be due at one moment: pages reach its end, however many share it.
pub async fn thousands_of_one_moment_are_all_listed<B: Bench>(bench: B) {
    const JOBS: usize = 4_400;
    let class = fresh_class();
    bench.store().declare(&class).await.unwrap();
    let at_ms = bench.store().depths(&class).await.unwrap().now_ms + HOUR_MS;
    let jobs: Vec<NewJob> = (0..JOBS).map(|i| NewJob { at_ms, ..job(&format!("{i:04}")) }).collect();
    for chunk in jobs.chunks(200) {
        bench.store().push(&class, chunk).await.unwrap();
    }
    let all: Vec<&str> = jobs.iter().map(|job| job.key.as_str()).collect();
    assert_eq!(pages(&bench, &class, 500, async |_| ()).await, all);
}

pub async fn a_job_is_moved_only_while_it_is_as_it_was_seen<B: Bench>(bench: B) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[job("a"), job("b")]).await;
    let look = |key: &str| Reconcile { key: key.into(), mend: None };
    let found = bench.store().reconcile(&scene.class, &[look("a"), look("b"), look("c")]).await.unwrap();
    let seen: Vec<Vec<u8>> = found
        .iter()
        .zip([vec![State::Queued], vec![State::Queued], vec![]])
        .map(|(found, expected)| {
            let Reconciled::Seen { states, seen, record, is_receipt } = found else { panic!("{found:?}") };
            assert_eq!((states, *is_receipt), (&expected, false));
            assert_eq!(matches!(record, Record::Job(_)), !expected.is_empty(), "{record:?}");
            seen.clone()
        })
        .collect();
    scene.claim(1).await;
    let to = |key: &str, seen: &Vec<u8>| Reconcile {
        key: key.into(),
        mend: Some((seen.clone(), Some(State::Deferred))),
    };
    let moves = [to("a", &seen[0]), to("b", &seen[1])];
    let answers = bench.store().reconcile(&scene.class, &moves).await.unwrap();
    assert_eq!(answers, [Reconciled::Changed, Reconciled::Mended], "a was claimed meanwhile");
    let depths = bench.store().depths(&scene.class).await.unwrap();
    assert_eq!((depths.of(State::InFlight), depths.of(State::Deferred)), (1, 1));
    assert_eq!(
        bench.store().reconcile(&scene.class, &moves).await.unwrap()[1],
        Reconciled::Changed,
        "a repeat"
    );
}
