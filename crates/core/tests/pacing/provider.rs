//! A simulated remote side: a token bucket, or so many a window; refused requests may count too.

#[derive(Clone)]
pub(crate) struct Provider {
    /// From which ms on which limit a second.
    pub(crate) limits: Vec<(u64, f64)>,
    pub(crate) burst: f64,
    /// So many a window of this length instead of a bucket; each window begins with nothing counted.
    pub(crate) window_ms: Option<u64>,
    /// The wait it names, in whole seconds; `None`: it names none.
    pub(crate) retry_after_s: Option<u64>,
    /// Refused requests count as accepted ones do.
    pub(crate) refusals_count: bool,
    pub(crate) latency_ms: u64,
    /// When the law first looks, and what shakes each answer: no two real runs are alike.
    pub(crate) phase_ms: u64,
    pub(crate) tokens: f64,
    pub(crate) at_ms: f64,
}

impl Provider {
    pub(crate) fn new(limit: f64, burst: f64) -> Self {
        Self {
            limits: vec![(0, limit)],
            burst,
            window_ms: None,
            retry_after_s: Some(1),
            refusals_count: false,
            latency_ms: 5,
            phase_ms: 0,
            tokens: burst,
            at_ms: 0.0,
        }
    }

    pub(crate) fn limit(&self, at_ms: u64) -> f64 {
        self.limits.iter().rev().find(|(from, _)| *from <= at_ms).map_or(0.0, |(_, limit)| *limit)
    }

    pub(crate) fn accepts(&mut self, at_ms: f64) -> bool {
        let limit = self.limit(at_ms as u64);
        if let Some(window_ms) = self.window_ms.map(|window_ms| window_ms as f64) {
            // `tokens` are what is left of the window.
            if self.at_ms == 0.0 || (at_ms / window_ms).floor() > (self.at_ms / window_ms).floor() {
                self.tokens = limit * window_ms / 1_000.0;
            }
        } else {
            self.tokens = (self.tokens + (at_ms - self.at_ms) * limit / 1_000.0).min(self.burst);
        }
        self.at_ms = at_ms;
        let accepted = self.tokens >= 1.0;
        if accepted || self.refusals_count {
            // What is refused counts no further back than a window does.
            self.tokens = (self.tokens - 1.0).max(-self.burst.max(1.0));
        }
        accepted
    }

    /// What an omniscient sender would need, in ms.
    pub(crate) fn physical_ms(&self, jobs: u64, arrivals: impl Fn(u64) -> u64) -> u64 {
        let (mut tokens, mut sent, mut now_ms) = (self.burst, 0, 0);
        while sent < jobs + arrivals(now_ms) {
            let can = (tokens.floor() as u64).min(jobs + arrivals(now_ms) - sent);
            (sent, tokens) = (sent + can, tokens - can as f64);
            now_ms += 1;
            tokens = (tokens + self.limit(now_ms) / 1_000.0).min(self.burst);
        }
        now_ms
    }
}
