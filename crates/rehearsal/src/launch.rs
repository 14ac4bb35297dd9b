//! A launch to rehearse: what is pushed when, what the remote side really allows, what we believe it allows, and what
//! goes wrong on the way.

use crate::scenario::{LimitStep, Scenario};
use paceline_core::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One launch. Every field has a default, so a file says only what differs:
///
/// ```toml
/// bulk = 10000
/// bulk_over_s = 180.0
/// multiplier = 3.0
/// events = [{ at_s = 10.0, set = { always = { status = 503 } } }]
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Launch {
    /// Bulk jobs.
    pub bulk: u64,
    /// Pushed evenly over so long; 0: all at once.
    pub bulk_over_s: f64,
    /// Transactional jobs a second, until the bulk is through.
    pub transactional_rate: f64,
    /// What the remote side really allows.
    pub rate: f64,
    /// At once.
    pub burst: u32,
    /// Later rates, by the time since the beginning.
    pub limit_schedule: Vec<LimitStep>,
    /// The credential is configured with so many times the real limit.
    pub multiplier: f64,
    /// The limit is known: the pace starts at the ceiling. Else it is a guess, and starts modestly.
    pub known: bool,
    /// The share of requests that are accepted and never answered.
    pub unanswered: f64,
    /// From a request's arrival to its answer.
    pub latency_ms: u64,
    /// Worker processes.
    pub workers: usize,
    /// One of them is killed then and replaced by a new one.
    pub kill_worker_at_s: Option<f64>,
    /// What changes at the remote side on the way.
    pub events: Vec<Event>,
    /// Of the provider's draws.
    pub seed: u64,
}

/// A change of the provider's script at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Seconds since the beginning.
    pub at_s: f64,
    /// Fields of the sandbox's scenario; an empty string stands for its default.
    pub set: Value,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            bulk: 3_000,
            bulk_over_s: 0.0,
            transactional_rate: 12.0,
            rate: 100.0,
            burst: 50,
            limit_schedule: Vec::new(),
            multiplier: 1.0,
            known: false,
            unanswered: 0.01,
            latency_ms: 0,
            workers: 1,
            kill_worker_at_s: None,
            events: Vec::new(),
            seed: 7,
        }
    }
}

/// The launches that ship.
const SHIPPED: [(&str, &str); 7] = [
    ("known", include_str!("../launches/known.toml")),
    ("unknown", include_str!("../launches/unknown.toml")),
    ("moving", include_str!("../launches/moving.toml")),
    ("outage", include_str!("../launches/outage.toml")),
    ("expired-key", include_str!("../launches/expired-key.toml")),
    ("quota", include_str!("../launches/quota.toml")),
    ("launch", include_str!("../launches/launch.toml")),
];

impl Launch {
    /// The shipped launch of that name.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        Some(Self::from_toml(text).expect("a test reads every shipped launch"))
    }

    /// The names of the shipped launches.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Reads a launch as an operator writes it.
    pub fn from_toml(text: &str) -> Result<Self, Fault> {
        let launch: Self =
            toml::from_str(text).map_err(|error| Fault::new("launch", error.to_string().trim_end()))?;
        launch.check()?;
        Ok(launch)
    }

    /// Refuses values that make no sense, naming the field.
    pub fn check(&self) -> Result<(), Fault> {
        let within = |field: &str, value: f64, least: f64, most: f64| {
            let right = || Fault::new(field, format!("must be from {least} to {most}"));
            if (least..=most).contains(&value) { Ok(()) } else { Err(right()) }
        };
        within("bulk", self.bulk as f64, 0.0, 1_000_000.0)?;
        within("bulk_over_s", self.bulk_over_s, 0.0, 86_400.0)?;
        within("transactional_rate", self.transactional_rate, 0.0, 1_000.0)?;
        within("rate", self.rate, 0.01, 10_000.0)?;
        within("multiplier", self.multiplier, 0.01, 100.0)?;
        within("workers", self.workers as f64, 1.0, 64.0)?;
        let last = self.limit_schedule.last().map_or(self.rate, |step| step.rate_per_s);
        if self.transactional_rate >= last {
            return Err(Fault::new("transactional_rate", "must be below the last rate, or it never drains"));
        }
        self.scenario().check()
    }

    /// The provider's script.
    pub fn scenario(&self) -> Scenario {
        Scenario {
            rate_per_s: self.rate,
            burst: self.burst,
            limit_schedule: self.limit_schedule.clone(),
            unanswered_share: self.unanswered,
            latency_ms: self.latency_ms,
            seed: self.seed,
            ..Scenario::default()
        }
    }

    /// How many bulk jobs are pushed by then.
    pub fn bulk_by(&self, at_s: f64) -> u64 {
        if self.bulk_over_s <= 0.0 {
            return self.bulk;
        }
        ((at_s / self.bulk_over_s).min(1.0) * self.bulk as f64) as u64
    }

    /// How many transactional jobs are pushed by then.
    pub fn transactional_by(&self, at_s: f64) -> u64 {
        (at_s * self.transactional_rate) as u64
    }

    /// What the remote side allows a second at a moment.
    pub fn limit_at(&self, at_s: f64) -> f64 {
        self.limit_schedule
            .iter()
            .rev()
            .find(|step| step.at_s <= at_s)
            .map_or(self.rate, |step| step.rate_per_s)
    }

    /// What it allows in all until a moment.
    pub fn allowed_by(&self, at_s: f64) -> f64 {
        let steps = (at_s * 100.0) as u64;
        f64::from(self.burst) + (0..steps).map(|step| self.limit_at(step as f64 / 100.0) / 100.0).sum::<f64>()
    }

    /// How long a sender needs that knows everything, with the same arrivals and limits, in s. An outage it would have
    /// to wait for too is not in it.
    pub fn physical_s(&self) -> f64 {
        let (mut tokens, mut sent, mut now_ms) = (f64::from(self.burst), 0, 0_u64);
        loop {
            let at_s = now_ms as f64 / 1_000.0;
            let is_pushed = self.bulk_by(at_s) == self.bulk;
            let pushed = self.bulk_by(at_s) + self.transactional_by(at_s);
            let can = (tokens.floor() as u64).min(pushed - sent);
            (sent, tokens) = (sent + can, tokens - can as f64);
            if is_pushed && sent == pushed || now_ms > 86_400_000 {
                return at_s;
            }
            now_ms += 1;
            tokens = (tokens + self.limit_at(at_s) / 1_000.0).min(f64::from(self.burst));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_launch_is_one() {
        for name in Launch::names() {
            let launch = Launch::shipped(name).expect("it ships");
            assert!(launch.physical_s() < 700.0, "{name}");
        }
        assert!(Launch::shipped("nope").is_none());
    }

    #[test]
    fn a_sender_that_knows_everything_needs_what_the_bucket_says() {
        let plain = Launch { transactional_rate: 0.0, ..Launch::default() };
        assert!((plain.physical_s() - 29.5).abs() < 0.05, "{}", plain.physical_s());
        let slower =
            Launch { limit_schedule: vec![LimitStep { at_s: 10.0, rate_per_s: 50.0 }], ..plain.clone() };
        assert!((slower.physical_s() - 49.0).abs() < 0.05, "{}", slower.physical_s());
        let slow_to_come = Launch { bulk_over_s: 60.0, ..plain };
        assert!((slow_to_come.physical_s() - 60.0).abs() < 0.05, "it cannot send what is not there yet");
        assert!((slower.allowed_by(20.0) - 1_550.0).abs() < 1.0);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, field) in [("rate = 0.0", "rate"), ("workers = 0", "workers"), ("bulks = 1", "launch")] {
            assert_eq!(Launch::from_toml(text).unwrap_err().field, field, "{text}");
        }
        assert_eq!(Launch::from_toml("rate = 10.0").unwrap_err().field, "transactional_rate");
    }
}
