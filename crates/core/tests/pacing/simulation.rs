//! A simulated budget and provider, one millisecond at a time.
//!
//! The budget is the one of `lua/part/budget.lua`; several workers look at it, each in its own phase. Nothing here draws
//! a random number: the same law gives the same figures every time.

use crate::provider::Provider;
use paceline_core::pace::{Bounds, Heard, Pace, adapt};
use std::collections::BTreeMap;

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

    /// How many ms from now the next token is whole. A claim takes it when that is within this millisecond, and the
    /// worker sends it then.
    fn offset_ms(&self, now_ms: u64) -> f64 {
        (1.0 - self.tokens(now_ms)).max(0.0) * 1_000.0 / self.pace.rate_per_s
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

/// What there is to send, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// At once, and so many more each second until those are through.
    pub(crate) jobs: u64,
    pub(crate) per_s: u64,
    pub(crate) most_ms: u64,
    /// Each looks at the pace every fifth of a second.
    pub(crate) workers: u64,
}

impl Load {
    pub(crate) fn new(jobs: u64, per_s: u64, most_ms: u64) -> Self {
        Self { jobs, per_s, most_ms, workers: 1 }
    }

    fn arrived(&self, now_ms: u64) -> u64 {
        self.jobs + now_ms * self.per_s / 1_000
    }
}

/// The sums at each whole second: accepted, allowed a second, sent, throttled.
type Second = (u64, f64, u64, u64);

struct World {
    provider: Provider,
    load: Load,
    sender: Sender,
    now_ms: u64,
    sent: u64,
    throttled: u64,
    unanswered: u64,
    seconds: Vec<Second>,
}

/// Ends when all are accepted or time is over.
pub(crate) fn run(provider: Provider, bounds: Bounds, load: Load) -> (Run, Vec<(u64, String)>) {
    let physical_ms = provider.physical_ms(load.jobs, |now_ms| now_ms * load.per_s / 1_000);
    let mut world = World {
        provider,
        load,
        sender: Sender::new(bounds),
        now_ms: 0,
        sent: 0,
        throttled: 0,
        unanswered: 0,
        seconds: Vec::new(),
    };
    while world.sender.heard.accepted < load.arrived(world.now_ms) && world.now_ms < load.most_ms {
        world.step();
    }
    (world.tell(physical_ms), world.sender.decisions)
}

impl World {
    /// A millisecond in which something happens.
    fn step(&mut self) {
        let heard_a_throttle = self.hear();
        if heard_a_throttle || self.until_look() == 0 {
            self.sender.adapt(self.now_ms);
        }
        let is_bound = self.send();
        if self.now_ms.is_multiple_of(1_000) {
            let limit = self.provider.limit(self.now_ms);
            let accepted = self.sender.heard.accepted + self.unanswered;
            self.seconds.push((accepted, limit, self.sent, self.throttled));
        }
        self.now_ms += self.until_next(is_bound);
    }

    fn until_look(&self) -> u64 {
        let each_ms = (200 / self.load.workers).max(1);
        let since_ms = (self.now_ms + self.provider.phase_ms) % each_ms;
        if since_ms == 0 { 0 } else { each_ms - since_ms }
    }

    fn until_next(&self, is_bound: bool) -> u64 {
        let each_ms = (200 / self.load.workers).max(1);
        let look_ms = each_ms - (self.now_ms + self.provider.phase_ms) % each_ms;
        let answer_ms = self.sender.on_the_way.keys().next().map_or(look_ms, |at_ms| at_ms - self.now_ms);
        let hold_ms = self.sender.heard.hold_until_ms.saturating_sub(self.now_ms);
        let token_ms = if is_bound {
            self.sender.offset_ms(self.now_ms) as u64
        } else if hold_ms > 0 {
            hold_ms
        } else {
            // What arrives next may go at once.
            if self.load.per_s > 0 { 1 } else { look_ms }
        };
        let second_ms = 1_000 - self.now_ms % 1_000;
        look_ms.min(answer_ms).min(token_ms).min(second_ms).max(1)
    }

    fn hear(&mut self) -> bool {
        let mut heard_a_throttle = false;
        while let Some(entry) =
            self.sender.on_the_way.first_entry().filter(|entry| *entry.key() <= self.now_ms)
        {
            for (claimed_ms, accepted) in entry.remove() {
                self.sender.settle(self.now_ms, claimed_ms, accepted, self.provider.retry_after_s);
                self.sender.heard.answer_ms = self.provider.latency_ms;
                heard_a_throttle |= !accepted;
                self.throttled += u64::from(!accepted);
            }
        }
        heard_a_throttle
    }

    /// Whether the pace kept a job waiting.
    fn send(&mut self) -> bool {
        let now_ms = self.now_ms;
        while now_ms >= self.sender.heard.hold_until_ms
            && self.sent - self.throttled - self.unanswered < self.load.arrived(now_ms)
        {
            let offset_ms = self.sender.offset_ms(now_ms);
            if offset_ms >= 1.0 {
                self.sender.heard.bound_at_ms = now_ms;
                return true;
            }
            self.sender.take(now_ms);
            let there_ms = now_ms + self.provider.latency_ms / 2;
            let accepted = self.provider.accepts(there_ms as f64 + offset_ms);
            self.sent += 1;
            if accepted && self.sent % 100 == 37 {
                // Accepted, and nobody says so: it goes again, and costs a token each time.
                self.unanswered += 1;
                continue;
            }
            let shaken_ms = self.provider.latency_ms + (self.sent * 7_919 + self.provider.phase_ms) % 7;
            self.sender.on_the_way.entry(now_ms + shaken_ms).or_default().push((now_ms, accepted));
        }
        false
    }

    fn tell(&self, physical_ms: u64) -> Run {
        let half = &self.seconds[self.seconds.len() / 2..];
        let allowed: f64 = half.iter().skip(1).map(|second| second.1).sum();
        let (first, last) = (half[0], half[half.len() - 1]);
        Run {
            drain_s: self.now_ms as f64 / 1_000.0,
            ratio: self.now_ms as f64 / physical_ms as f64,
            attempts: self.sent,
            throttled: self.throttled,
            episodes: self.sender.heard.episodes,
            utilisation: (last.0 - first.0) as f64 / allowed.max(1.0),
            late_share: (last.3 - first.3) as f64 / (last.2 - first.2).max(1) as f64,
            last_pace_per_s: self.sender.pace.rate_per_s,
        }
    }
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
