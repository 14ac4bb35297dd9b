//! Redis's clock, as far as this process can tell without asking.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The last answer's time plus what has passed since by the monotonic clock.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    /// Redis's time at `started`, in ms.
    base_ms: AtomicU64,
}

impl Clock {
    /// Until the first answer this machine's own clock has to do.
    pub(super) fn start() -> Self {
        let own = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        Self { started: Instant::now(), base_ms: AtomicU64::new(own) }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.base_ms.load(Ordering::Relaxed) + self.elapsed_ms()
    }

    pub(super) fn heard(&self, now_ms: u64) {
        self.base_ms.store(now_ms.saturating_sub(self.elapsed_ms()), Ordering::Relaxed);
    }

    fn elapsed_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}
