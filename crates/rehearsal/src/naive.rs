//! What people write before they read about rate limits: a sender with two buckets, ok and failed.
//!
//! A pool of workers takes from one list, first come, first served, no faster than its own configuration says. A 2xx
//! is ok. Anything else, and no answer, is tried again one second later, three times in all, and then filed as failed:
//! a 429 looks like any other error. There is no idempotency key, so a repeat after a lost answer is a second message.
//! This is what the examples of queue libraries do out of the box; a careful team does better by hand.

use crate::launch::Launch;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Tries of a job in all, and the pause between two.
const TRIES: u8 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Requests at once.
const POOL: usize = 32;

/// What it believes at the end, and when each transactional job was pushed, in µs since the epoch.
#[derive(Debug, Default)]
pub struct NaiveEnd {
    /// Jobs pushed.
    pub pushed: u64,
    /// The keys of those filed as failed.
    pub failed: Vec<String>,
    /// Not yet done when it was stopped.
    pub left: u64,
    /// Key → when it was pushed.
    pub pushed_at_us: Vec<(String, u64)>,
}

struct Job {
    key: String,
    tries: u8,
    not_before: Instant,
}

/// The one list.
#[derive(Default)]
struct List {
    jobs: VecDeque<Job>,
    open: u64,
    failed: Vec<String>,
}

/// How one request ends: whether the remote side said ok.
pub trait Post: Clone + Send + Sync + 'static {
    /// Posts a message; `false` for any other answer than 2xx, and for none.
    fn post(&self, key: &str) -> impl Future<Output = bool> + Send;
}

/// Sends the launch. `rate_per_s` is what its configuration says; `most` ends it.
pub async fn send(launch: &Launch, post: impl Post, now_us: fn() -> u64, most: Duration) -> NaiveEnd {
    let list = Arc::new(Mutex::new(List::default()));
    let (began, began_us, mut end) = (Instant::now(), now_us(), NaiveEnd::default());
    let pool = Arc::new(tokio::sync::Semaphore::new(POOL));
    let mut every = tokio::time::interval(Duration::from_secs_f64(1.0 / (launch.rate * launch.multiplier)));
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let (mut bulk, mut transactional) = (0, 0);
    while began.elapsed() < most {
        every.tick().await;
        let at_s = began.elapsed().as_secs_f64();
        let mut pushed = Vec::new();
        pushed.extend((bulk..launch.bulk_by(at_s)).map(|index| format!("bulk:{index}")));
        bulk = launch.bulk_by(at_s);
        let open = list.lock().expect("no holder panics").open + pushed.len() as u64;
        if bulk == launch.bulk && open == 0 {
            break;
        }
        while transactional < launch.transactional_by(at_s) {
            let key = format!("transactional:{transactional}");
            // From when it was due, however long the pool was busy.
            let due_s = (transactional + 1) as f64 / launch.transactional_rate;
            end.pushed_at_us.push((key.clone(), began_us + (due_s * 1e6) as u64));
            pushed.push(key);
            transactional += 1;
        }
        end.pushed += pushed.len() as u64;
        let next = take(&mut list.lock().expect("no holder panics"), pushed);
        let Some(job) = next else { continue };
        let permit = pool.clone().acquire_owned().await.expect("the pool is never closed");
        let (list, post) = (list.clone(), post.clone());
        tokio::spawn(async move {
            let ok = post.post(&job.key).await;
            drop(permit);
            finish(&mut list.lock().expect("no holder panics"), job, ok);
        });
    }
    let mut list = list.lock().expect("no holder panics");
    (end.failed, end.left) = (std::mem::take(&mut list.failed), list.open);
    end
}

/// Puts new jobs at the end; the first that may go.
fn take(list: &mut List, pushed: Vec<String>) -> Option<Job> {
    let now = Instant::now();
    list.open += pushed.len() as u64;
    list.jobs.extend(pushed.into_iter().map(|key| Job { key, tries: 0, not_before: now }));
    let index = list.jobs.iter().take(1_000).position(|job| job.not_before <= now)?;
    list.jobs.remove(index)
}

fn finish(list: &mut List, mut job: Job, ok: bool) {
    job.tries += 1;
    if !ok && job.tries < TRIES {
        job.not_before = Instant::now() + PAUSE;
        list.jobs.push_back(job);
        return;
    }
    list.open -= 1;
    if !ok {
        list.failed.push(job.key);
    }
}
