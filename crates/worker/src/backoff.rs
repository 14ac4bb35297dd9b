//! How long a loop waits after Redis failed it: jittered, doubling, at most a second, so that sending resumes
//! within seconds of Redis being back.

use rand::RngExt;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct RedisBackoff {
    failures: u32,
}

impl RedisBackoff {
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(crate) async fn pause(&mut self) {
        let window_ms = 1_000.min(50u64 << self.failures.min(10));
        self.failures += 1;
        let pause_ms = rand::rng().random_range(window_ms / 2..=window_ms);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
}
