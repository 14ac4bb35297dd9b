//! A simulated budget and provider, one millisecond at a time.
//!
//! The budget is the one of `lua/part/budget.lua`; the provider is a token bucket in which refused requests may count
//! too. Nothing here draws a random number: the same law gives the same figures every time.

use paceline_core::pace::{Bounds, Heard, Pace, adapt};
use std::collections::BTreeMap;

/// A remote side.
#[derive(Clone)]
pub(crate) struct Provider {
    /// From which ms on which limit a second.
    pub(crate) limits: Vec<(u64, f64)>,
    pub(crate) burst: f64,
    /// The wait it names, in whole seconds; `None`: it names none.
    pub(crate) retry_after_s: Option<u64>,
    /// Refused requests count as accepted ones do.
    pub(crate) refusals_count: bool,
    pub(crate) latency_ms: u64,
    /// When the law first looks, and what shakes each answer: no two real runs are alike.
    pub(crate) phase_ms: u64,
    pub(crate) tokens: f64,
    pub(crate) at_ms: u64,
}

impl Provider {
    pub(crate) fn new(limit: f64, burst: f64) -> Self {
        Self {
            limits: vec![(0, limit)],
            burst,
            retry_after_s: Some(1),
            refusals_count: false,
            latency_ms: 5,
            phase_ms: 0,
            tokens: burst,
            at_ms: 0,
        }
    }

    fn limit(&self, at_ms: u64) -> f64 {
        self.limits.iter().rev().find(|(from, _)| *from <= at_ms).map_or(0.0, |(_, limit)| *limit)
    }

    fn accepts(&mut self, at_ms: u64) -> bool {
        let gained = (at_ms - self.at_ms) as f64 * self.limit(at_ms) / 1_000.0;
        self.tokens = (self.tokens + gained).min(self.burst);
        self.at_ms = at_ms;
        let accepted = self.tokens >= 1.0;
        if accepted || self.refusals_count {
            // What is refused counts no further back than a window does.
            self.tokens = (self.tokens - 1.0).max(-self.burst.max(1.0));
        }
        accepted
    }

    /// What an omniscient sender would need, in ms.
    fn physical_ms(&self, jobs: u64, arrivals: impl Fn(u64) -> u64) -> u64 {
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

/// The budget in Redis and the workers that share it.
pub(crate) struct Sender {
    bounds: Bounds,
    pace: Pace,
    heard: Heard,
    arrival_ms: f64,
    changed_ms: u64,
    /// Settlements by the moment they are written: when each was claimed, and whether it was accepted.
    on_the_way: BTreeMap<u64, Vec<(u64, bool)>>,
    decisions: Vec<(u64, String)>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Run {
    pub(crate) drain_s: f64,
    pub(crate) ratio: f64,
    pub(crate) attempts: u64,
    pub(crate) throttled: u64,
    pub(crate) episodes: u64,
    /// Accepted of what the limit allowed, and throttled of what was sent, over the last half.
    pub(crate) utilisation: f64,
    pub(crate) late_share: f64,
    pub(crate) last_pace_per_s: f64,
}

impl Run {
    pub(crate) fn throttled_share(&self) -> f64 {
        self.throttled as f64 / self.attempts.max(1) as f64
    }
}

impl Sender {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            pace: Pace::first(&bounds),
            bounds,
            heard: Heard::default(),
            arrival_ms: 0.0,
            changed_ms: 0,
            on_the_way: BTreeMap::new(),
            decisions: Vec::new(),
        }
    }

    fn tokens(&self, now_ms: u64) -> f64 {
        let released =
            self.heard.hold_until_ms as f64 + (self.pace.burst - 1.0) * 1_000.0 / self.pace.rate_per_s;
        let arrival = self.arrival_ms.max(now_ms as f64).max(released);
        self.pace.burst - (arrival - now_ms as f64) * self.pace.rate_per_s / 1_000.0
    }

    fn take(&mut self, now_ms: u64) {
        let tokens = self.tokens(now_ms) - 1.0;
        self.arrival_ms = now_ms as f64 + (self.pace.burst - tokens) * 1_000.0 / self.pace.rate_per_s;
        self.heard.taken += 1;
    }

    fn settle(&mut self, now_ms: u64, claimed_ms: u64, accepted: bool, retry_after_s: Option<u64>) {
        if accepted {
            self.heard.accepted += 1;
            return;
        }
        let counts = claimed_ms >= self.changed_ms;
        self.heard.throttled += u64::from(counts);
        if let Some(seconds) = retry_after_s {
            if now_ms >= self.heard.hold_until_ms && counts {
                self.heard.episodes += 1;
                (self.heard.episode_at_ms, self.changed_ms) = (now_ms, now_ms);
            }
            self.heard.hold_until_ms = self.heard.hold_until_ms.max(now_ms + seconds * 1_000);
        }
    }

    fn adapt(&mut self, now_ms: u64) {
        let Some(change) = adapt(&self.bounds, &self.pace, &self.heard, now_ms) else { return };
        let ahead = (self.arrival_ms - now_ms as f64).max(0.0) * self.pace.rate_per_s / 1_000.0;
        let tokens = (self.pace.burst - ahead).min(change.pace.burst);
        self.arrival_ms = now_ms as f64 + (change.pace.burst - tokens) * 1_000.0 / change.pace.rate_per_s;
        self.pace = change.pace;
        if change.is_cut {
            self.changed_ms = now_ms;
        }
        self.decisions.extend(change.cause.map(|cause| (now_ms, cause)));
    }
}

/// `jobs` at once and `per_s` more each second until those are through; ends when all are accepted or time is over.
pub(crate) fn run(
    mut provider: Provider,
    bounds: Bounds,
    jobs: u64,
    per_s: u64,
    most_ms: u64,
) -> (Run, Vec<(u64, String)>) {
    let arrivals = |now_ms: u64| now_ms * per_s / 1_000;
    let physical_ms = provider.physical_ms(jobs, arrivals);
    let mut sender = Sender::new(bounds);
    let mut run = Run::default();
    let (mut sent, mut refused, mut unanswered, mut now_ms) = (0, 0, 0, 0);
    let mut halves = Vec::new();
    while sender.heard.accepted < jobs + arrivals(now_ms) && now_ms < most_ms {
        let mut heard_a_throttle = false;
        while let Some(entry) = sender.on_the_way.first_entry().filter(|entry| *entry.key() <= now_ms) {
            for (claimed_ms, accepted) in entry.remove() {
                sender.settle(now_ms, claimed_ms, accepted, provider.retry_after_s);
                sender.heard.answer_ms = provider.latency_ms;
                heard_a_throttle |= !accepted;
                refused += u64::from(!accepted);
            }
        }
        if heard_a_throttle || (now_ms + provider.phase_ms).is_multiple_of(200) {
            sender.adapt(now_ms);
        }
        while now_ms >= sender.heard.hold_until_ms && sent - refused < jobs + arrivals(now_ms) {
            if sender.tokens(now_ms) < 1.0 {
                sender.heard.bound_at_ms = now_ms;
                break;
            }
            sender.take(now_ms);
            let accepted = provider.accepts(now_ms + provider.latency_ms / 2);
            sent += 1;
            if accepted && sent % 100 == 37 {
                // Accepted, and nobody says so: it goes again, and costs a token each time.
                refused += 1;
                unanswered += 1;
                continue;
            }
            let shaken_ms = provider.latency_ms + (sent * 7_919 + provider.phase_ms) % 7;
            sender.on_the_way.entry(now_ms + shaken_ms).or_default().push((now_ms, accepted));
        }
        if now_ms.is_multiple_of(1_000) {
            halves.push((sender.heard.accepted, provider.limit(now_ms), sent, refused - unanswered));
        }
        now_ms += 1;
    }
    let half = &halves[halves.len() / 2..];
    let allowed: f64 = half.iter().skip(1).map(|half| half.1).sum();
    run.utilisation = (half[half.len() - 1].0 - half[0].0) as f64 / allowed.max(1.0);
    let last = half[half.len() - 1];
    run.late_share = (last.3 - half[0].3) as f64 / (last.2 - half[0].2).max(1) as f64;
    run.drain_s = now_ms as f64 / 1_000.0;
    run.ratio = now_ms as f64 / physical_ms as f64;
    (run.attempts, run.throttled, run.episodes) = (sent, refused - unanswered, sender.heard.episodes);
    run.last_pace_per_s = sender.pace.rate_per_s;
    (run, sender.decisions)
}

pub(crate) fn known(rate: f64, burst: f64) -> Bounds {
    Bounds {
        ceiling_per_s: rate,
        ceiling_burst: burst * 0.9,
        floor_per_s: rate / 100.0,
        first_per_s: rate,
        first_burst: burst * 0.9,
    }
}

/// A ceiling that is a guess, and a modest start.
pub(crate) fn guessed(rate: f64, burst: f64) -> Bounds {
    Bounds { first_per_s: rate * 0.2, first_burst: (burst * 0.045).max(1.0), ..known(rate, burst) }
}

#[allow(clippy::print_stdout, reason = "a test that fails shows what the law did")]
pub(crate) fn tell(name: &str, run: &Run, decisions: &[(u64, String)]) {
    println!(
        "{name}: ratio {:.3}, drain {:.1} s, throttled {:.2} % ({:.2} late), {} episodes, utilisation {:.3}, last {:.1}/s",
        run.ratio,
        run.drain_s,
        100.0 * run.throttled_share(),
        100.0 * run.late_share,
        run.episodes,
        run.utilisation,
        run.last_pace_per_s
    );
    for (at_ms, cause) in decisions.iter().take(40) {
        println!("  {:6.2} {cause}", *at_ms as f64 / 1_000.0);
    }
}
