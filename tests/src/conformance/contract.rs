//! What other programs may rely on in Redis itself: the push script, how keys are spelled, what is left behind.

use super::bench::{Bench, RedisBench};
use super::ends::{accepted, claimed, end, keys};
use super::scene::{Scene, fresh_class};
use crate::store::job;
use paceline_core::State;
use paceline_store::*;
use redis::{FromRedisValue, Value};

/// Calls the push script as a producer in another language does: bytes in, words out.
async fn push_raw(
    bench: &RedisBench,
    class: &ClassRef,
    key: &[u8],
    at_ms: &str,
    campaign: &[u8],
) -> [String; 2] {
    let script = scripts::all().into_iter().find(|script| script.name == "push").expect("there is one");
    let mut keys: Vec<Vec<u8>> = bench.keys.class(class, 0).into_iter().map(String::into_bytes).collect();
    keys.push([bench.keys.job(class, "").as_bytes(), key].concat());
    keys.push([bench.keys.body(class, "").as_bytes(), key].concat());
    let mut call = redis::cmd("EVAL");
    call.arg(&script.source).arg(keys.len()).arg(&keys);
    call.arg(key).arg(at_ms).arg("0").arg("1").arg(campaign).arg("").arg("{}");
    let answer = bench.raw(&call).await;
    let (_, _, word, extra) =
        <(String, u64, String, String)>::from_redis_value(answer).expect("ok, now, a pair");
    [word, extra]
}

/// Rust reads keys and campaigns as text. What is none could never be settled, only reaped for ever.
pub async fn a_producer_in_any_language_is_refused_what_nobody_could_read(bench: RedisBench) {
    let mut scene = Scene::new(&bench).await;
    let class = scene.class.clone();
    let long = "x".repeat(201);
    let bad: [&[u8]; 13] = [
        b"",
        long.as_bytes(),
        b"a\nb",
        b"\0",
        b"\x7f",
        "\u{85}".as_bytes(),
        b"\xff",
        b"caf\xe9",
        b"\xc3",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
    ];
    for key in bad {
        assert_eq!(push_raw(&bench, &class, key, "0", b"").await, ["invalid", "key"], "{key:?}");
    }
    for campaign in &bad[2..] {
        assert_eq!(
            push_raw(&bench, &class, b"k", "0", campaign).await,
            ["invalid", "campaign"],
            "{campaign:?}"
        );
    }
    for at_ms in ["", "soon", "nan", "inf", "-1", "1.5"] {
        assert_eq!(push_raw(&bench, &class, b"k", at_ms, b"").await, ["invalid", "at_ms"], "{at_ms}");
    }
    scene.look().await;
    for key in ["welcome:42", "ü", "鍵", "🔑", "\u{a0}", "\u{d7ff}\u{e000}", "\u{10ffff}"] {
        assert_eq!(
            push_raw(&bench, &class, key.as_bytes(), "0", key.as_bytes()).await,
            ["created", ""],
            "{key}"
        );
        let stored = bench.store().get(&class, key).await.unwrap().unwrap();
        assert!(matches!(stored.record, Record::Job(job) if job.key.as_str() == key && job.campaign == key));
    }
}

/// An older script let such a campaign in: Lua reads the record, Rust does not.
pub async fn a_record_that_only_lua_can_read_is_parked(bench: RedisBench) {
    let mut scene = Scene::new(&bench).await;
    scene.push(&[NewJob { campaign: "caf_".into(), ..job("a") }]).await;
    let at = bench.keys.job(&scene.class, "a");
    bench.raw(redis::cmd("SETRANGE").arg(at).arg(record::HEADER_BYTES + 3).arg(b"\xe9")).await;
    let ask = scene.ask(1);
    let Ok(Claim::Jobs(batch)) = bench.store().claim(&scene.class, &ask).await else { panic!("it is due") };
    assert_eq!(claimed(&batch, "a").record, Record::Odd);
    let end = end(&batch, "a", State::Failed);
    let settled = bench.store().settle(&scene.class, &scene.trips, &[end]).await;
    assert_eq!(settled, Ok(vec![Settled::Parked]));
}

pub async fn a_class_on_the_move_takes_nothing(bench: RedisBench) {
    let mut scene = Scene::new(&bench).await;
    let hash = bench.keys.class_hash(&scene.class);
    bench.raw(redis::cmd("HSET").arg(&hash).arg("moving").arg("1")).await;
    assert_eq!(bench.store().push(&scene.class, &[job("a")]).await, Err(StoreError::Moving));
    bench.raw(redis::cmd("HDEL").arg(&hash).arg("moving")).await;
    assert_eq!(scene.push(&[job("a")]).await, [Pushed::Created]);
}

/// A script cache that was lost (a restart, a failover, SCRIPT FLUSH) heals itself.
pub async fn a_lost_script_cache_heals_itself(bench: RedisBench) {
    let mut scene = Scene::new(&bench).await;
    bench.raw(redis::cmd("SCRIPT").arg("FLUSH")).await;
    scene.push(&[job("a")]).await;
    bench.raw(redis::cmd("SCRIPT").arg("FLUSH")).await;
    assert_eq!(keys(&scene.claim(1).await), ["a"]);
}

async fn keys_of(bench: &RedisBench, class: &ClassRef) -> Vec<String> {
    let pattern = format!("*{{{}}}*", class.group);
    let answer = bench.raw(redis::cmd("KEYS").arg(pattern)).await;
    let mut keys = Vec::<String>::from_redis_value(answer).expect("names");
    keys.sort();
    keys
}

/// The words in the header of a job's record.
async fn flags_of(bench: &RedisBench, class: &ClassRef, key: &str) -> Vec<&'static str> {
    let record = bench.raw(redis::cmd("GET").arg(bench.keys.job(class, key))).await;
    let Value::BulkString(record) = record else { panic!("{key}: {record:?}") };
    record::Header::read(&record).expect("a header").flags
}

/// A large document is gone with the last thing that needs it, whichever way the job ends; the header says so.
pub async fn a_body_goes_with_its_job_whichever_way_it_ends(bench: RedisBench) {
    let mut scene = Scene::new(&bench).await;
    let class = scene.class.clone();
    let large = |key: &str| NewJob { document: vec![b'x'; 5_000], ..job(key) };
    let all = ["late", "settled", "cancelled", "expired", "erased", "kept"];
    scene.push(&all.map(large)).await;
    let lapsed = scene.claim_and_lapse(10).await;
    let batch = scene.reap(10).await;
    let back: Vec<Settlement> = all[2..].iter().map(|key| end(&batch, key, State::Pending)).collect();
    scene.settle(&back).await;
    let mut bodies: Vec<String> = all.map(|key| bench.keys.body(&class, key)).to_vec();
    bodies.sort();
    let left = async || -> Vec<String> {
        keys_of(&bench, &class).await.into_iter().filter(|key| key.contains(":body:")).collect()
    };
    assert_eq!(left().await, bodies);
    scene.settle(&[accepted(&lapsed, "late", "m1"), accepted(&batch, "settled", "m2")]).await;
    scene.cancel(&["cancelled"]).await;
    scene.expire("expired").await;
    scene.erase("erased").await;
    scene.will_expire(&["expired"]);
    assert_eq!(keys(&scene.claim(10).await), ["kept"]);
    assert_eq!(left().await, [bench.keys.body(&class, "kept")]);
    for (key, flags) in [
        ("late", &["receipt", "late"][..]),
        ("settled", &["receipt"]),
        ("cancelled", &["receipt"]),
        ("expired", &["receipt"]),
        ("erased", &["receipt", "erased"]),
        ("kept", &["body"]),
    ] {
        assert_eq!(flags_of(&bench, &class, key).await, flags, "{key}");
    }
}

/// Every key lies under the group's hash tag, and nothing stays of a job that was swept. What stays of the class
/// is bounded, or has an end of its own.
pub async fn a_swept_job_leaves_no_key_behind(bench: RedisBench) {
    let class = fresh_class();
    let mut scene = Scene::of(&bench, class.clone()).await;
    let large = |key: &str| NewJob { document: vec![b'x'; 5_000], ..job(key) };
    scene.push(&["a", "b", "c", "d"].map(large)).await;
    let batch = scene.claim(3).await;
    scene
        .settle(&[
            accepted(&batch, "a", "m1"),
            end(&batch, "b", State::Failed),
            end(&batch, "c", State::Pending),
        ])
        .await;
    scene.cancel(&["c", "d"]).await;
    let prefix = format!("t:{{{0}}}:{0}:", class.group);
    let before = keys_of(&bench, &class).await;
    assert!(before.contains(&format!("{prefix}body:b")) && !before.contains(&format!("{prefix}body:a")));
    scene.pass(2).await;
    for (state, jobs) in [(State::Submitted, 1), (State::Failed, 1), (State::Cancelled, 2)] {
        assert_eq!(scene.sweep(state, 0, 10).await, jobs);
    }
    let left: Vec<String> = keys_of(&bench, &class)
        .await
        .into_iter()
        .filter(|key| !key.starts_with(&format!("{prefix}minute:")))
        .collect();
    let budget = format!("t:{{{0}}}:budget:{0}-key", class.group);
    let mut stay = ["claimed:w", "class", "wake"].map(|what| format!("{prefix}{what}")).to_vec();
    stay.push(budget);
    stay.sort();
    assert_eq!(left, stay);
    let ttl = bench.raw(redis::cmd("TTL").arg(format!("{prefix}claimed:w"))).await;
    assert!(matches!(ttl, Value::Int(1..)), "{ttl:?}");
}
