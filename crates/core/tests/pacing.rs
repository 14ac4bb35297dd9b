//! The pace law against simulated providers, one millisecond at a time.
//!
//! The budget is the one of `lua/part/budget.lua`; the provider is a token bucket, or a window that counts refused
//! requests too. Nothing here draws a random number: the same law gives the same figures every time.

use paceline_core::pace::{Bounds, Heard, Pace, adapt};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A remote side.
#[derive(Clone)]
struct Provider {
    /// From which ms on which limit a second.
    limits: Vec<(u64, f64)>,
    burst: f64,
    /// The wait it names, in whole seconds; `None`: it names none.
    retry_after_s: Option<u64>,
    /// Refused requests count as accepted ones do.
    refusals_count: bool,
    latency_ms: u64,
    tokens: f64,
    at_ms: u64,
}

impl Provider {
    fn new(limit: f64, burst: f64) -> Self {
        Self {
            limits: vec![(0, limit)],
            burst,
            retry_after_s: Some(1),
            refusals_count: false,
            latency_ms: 5,
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
struct Sender {
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
struct Run {
    drain_s: f64,
    ratio: f64,
    attempts: u64,
    throttled: u64,
    episodes: u64,
    /// Accepted of what the limit allowed, and throttled of what was sent, over the last half.
    utilisation: f64,
    late_share: f64,
    last_pace_per_s: f64,
}

impl Run {
    fn throttled_share(&self) -> f64 {
        self.throttled as f64 / self.attempts.max(1) as f64
    }
}

impl Sender {
    fn new(bounds: Bounds) -> Self {
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
fn run(
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
    let (mut sent, mut refused, mut now_ms) = (0, 0, 0);
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
        if heard_a_throttle || now_ms % 200 == 0 {
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
            sender.on_the_way.entry(now_ms + provider.latency_ms).or_default().push((now_ms, accepted));
        }
        if now_ms % 1_000 == 0 {
            halves.push((sender.heard.accepted, provider.limit(now_ms), sent, refused));
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
    (run.attempts, run.throttled, run.episodes) = (sent, refused, sender.heard.episodes);
    run.last_pace_per_s = sender.pace.rate_per_s;
    (run, sender.decisions)
}

fn known(rate: f64, burst: f64) -> Bounds {
    Bounds {
        ceiling_per_s: rate,
        ceiling_burst: burst * 0.9,
        floor_per_s: rate / 100.0,
        first_per_s: rate,
        first_burst: burst * 0.9,
    }
}

/// A ceiling that is a guess, and a modest start.
fn guessed(rate: f64, burst: f64) -> Bounds {
    Bounds { first_per_s: rate * 0.2, first_burst: (burst * 0.18).max(1.0), ..known(rate, burst) }
}

fn tell(name: &str, run: &Run, decisions: &[(u64, String)]) {
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

#[test]
fn a_known_limit_is_used_up_and_never_met() {
    let (run, decisions) = run(Provider::new(100.0, 50.0), known(100.0, 50.0), 3_000, 12, 120_000);
    tell("known", &run, &decisions);
    assert!(run.ratio <= 1.03 && run.throttled == 0, "{run:?}");
}

#[test]
fn an_unknown_limit_is_found() {
    let (run, decisions) = run(Provider::new(100.0, 50.0), guessed(300.0, 150.0), 3_000, 12, 120_000);
    tell("unknown", &run, &decisions);
    assert!(run.ratio <= 1.10 && run.throttled_share() <= 0.01 && run.episodes <= 3, "{run:?}");
}

#[test]
fn a_limit_that_moves_is_followed() {
    let provider =
        Provider { limits: vec![(0, 100.0), (15_000, 40.0), (30_000, 150.0)], ..Provider::new(100.0, 50.0) };
    let (run, decisions) = run(provider, guessed(300.0, 150.0), 3_000, 12, 120_000);
    tell("moving", &run, &decisions);
    assert!(run.ratio <= 1.20 && run.throttled_share() <= 0.02, "{run:?}");
}

/// Where a provider names its waits and answers within a tenth of a second, its limit is used up and hardly ever met,
/// from ten a second to thousands; nothing collapses to the floor.
#[test]
fn limits_of_any_size_are_found_and_kept() {
    for limit in [20.0, 200.0, 2_000.0] {
        for (burst, latency_ms) in [(0.5, 5), (0.5, 100), (2.0, 5)] {
            let provider = Provider { latency_ms, ..Provider::new(limit, limit * burst) };
            let bounds = guessed(limit * 3.0, limit * burst * 3.0);
            let (run, decisions) = run(provider, bounds, (limit * 60.0) as u64, 0, 120_000);
            tell(&format!("{limit}/s, burst {burst} s, {latency_ms} ms"), &run, &decisions);
            assert!(run.ratio <= 1.20 && run.late_share <= 0.01, "{limit} {burst} {latency_ms}: {run:?}");
            assert!(run.last_pace_per_s >= limit * 0.5, "{run:?}");
        }
    }
}

/// Without a named wait, refusals that count, answers that take seconds: slower to find, and still everything drains.
#[test]
fn harder_providers_are_drained_too() {
    for (retry_after_s, refusals_count, latency_ms) in
        [(None, false, 5), (None, true, 5), (Some(1), true, 5), (Some(1), false, 1_000), (None, false, 1_000)]
    {
        let provider = Provider { retry_after_s, refusals_count, latency_ms, ..Provider::new(100.0, 50.0) };
        let (run, decisions) = run(provider, guessed(300.0, 150.0), 6_000, 0, 240_000);
        tell(&format!("{retry_after_s:?} {refusals_count} {latency_ms} ms"), &run, &decisions);
        assert!(run.drain_s < 200.0 && run.throttled_share() < 0.35, "{run:?}");
    }
}

/// A slow provider is no congested one, and neither is the ceiling.
#[test]
fn latency_alone_and_the_ceiling_change_nothing() {
    let slow = Provider { latency_ms: 3_000, ..Provider::new(1_000.0, 500.0) };
    let (run, decisions) = run(slow, known(100.0, 50.0), 3_000, 0, 120_000);
    assert!(decisions.is_empty() && run.throttled == 0 && run.last_pace_per_s == 100.0, "{decisions:?}");
}

fn bounds() -> Bounds {
    guessed(300.0, 150.0)
}

proptest! {
    /// Whatever is counted, the pace stays within its bounds, is a number, and survives being stored.
    #[test]
    fn no_evidence_leads_out_of_bounds(steps in prop::collection::vec((0u64..5_000, 0u64..500, 0u64..500, 0u64..2, any::<bool>()), 1..60)) {
        let (mut pace, mut heard, mut now_ms) = (Pace::first(&bounds()), Heard::default(), 1_000);
        for (passed_ms, accepted, throttled, episodes, bound) in steps {
            now_ms += passed_ms;
            heard.accepted += accepted;
            heard.throttled += throttled;
            heard.episodes += episodes;
            if episodes > 0 {
                (heard.episode_at_ms, heard.hold_until_ms) = (now_ms, now_ms + 1_000);
            }
            if bound {
                heard.bound_at_ms = now_ms;
            }
            let Some(change) = adapt(&bounds(), &pace, &heard, now_ms) else { continue };
            pace = serde_json::from_str(&serde_json::to_string(&change.pace).unwrap()).unwrap();
            prop_assert!((bounds().floor_per_s..=bounds().ceiling_per_s).contains(&pace.rate_per_s), "{pace:?}");
            prop_assert!((1.0..=bounds().ceiling_burst).contains(&pace.burst), "{pace:?}");
        }
    }
}

#[test]
fn an_episode_is_one_cut_however_often_and_late_it_is_heard_of() {
    let mut first = Pace::first(&bounds());
    first.rate_per_s = 200.0;
    let mut heard =
        Heard { accepted: 300, episodes: 1, episode_at_ms: 5_000, hold_until_ms: 6_000, ..Heard::default() };
    let cut = adapt(&bounds(), &first, &heard, 5_000).expect("it cuts");
    assert!(cut.is_cut && cut.pace.rate_per_s == 120.0, "{cut:?}");
    let mut pace = cut.pace;
    for now_ms in (5_000..9_000).step_by(20) {
        heard.throttled += 1;
        if let Some(change) = adapt(&bounds(), &pace, &heard, now_ms) {
            assert!(!change.is_cut || now_ms > 6_000 + 1_000, "{change:?}");
            pace = change.pace;
        }
        heard.throttled -= 1;
    }
    assert_eq!(pace.rate_per_s, 120.0, "nothing bound, so nothing was raised");
}

/// Limits from 1 to 5,000 a second, small and large bursts, short and long ways, with and without a named wait,
/// refusals that count and that do not.
fn sweep(limits: &[f64]) -> Vec<String> {
    let mut found = Vec::new();
    for &limit in limits {
        for burst in [1.0, limit * 0.1, limit * 0.5, limit * 2.0] {
            for latency_ms in [5, 100, 1_000, 5_000] {
                for (retry_after_s, refusals_count) in
                    [(Some(1), false), (None, false), (Some(1), true), (None, true)]
                {
                    let burst = burst.max(1.0).max(limit / 200.0);
                    let provider =
                        Provider { retry_after_s, refusals_count, latency_ms, ..Provider::new(limit, burst) };
                    let name =
                        format!("{limit}/s burst {burst} {latency_ms} ms {retry_after_s:?} {refusals_count}");
                    let jobs = ((limit * 120.0) as u64).max(2_000);
                    let most_ms = 2_000 * (jobs as f64 / limit) as u64;
                    let (run, decisions) = run(provider, guessed(limit * 3.0, burst * 3.0), jobs, 0, most_ms);
                    if run.utilisation < 0.95 || run.late_share > 0.01 {
                        tell(&name, &run, &decisions);
                        found.push(name);
                    }
                }
            }
        }
    }
    found
}

#[test]
#[ignore = "takes minutes without optimisation; run it when the law changes"]
fn the_whole_field() {
    let found = sweep(&[1.0, 10.0, 100.0, 1_000.0, 5_000.0]);
    println!("{} of 320 below 95 % of the limit or above 1 % throttled in their second half", found.len());
    assert!(found.len() < 280, "it was 256 when this was written");
}
