//! The pace law: drives a budget just under the remote side's real limit without being told it.
//!
//! A refusal says two things: *slow down*, and, by what was accepted until then, *how far*. A provider's bucket lets
//! `burst + limit × time` through before it refuses, so two refused stretches of different length measure both
//! numbers. The law cuts at once, once per episode; goes to just under a measured limit; climbs slowly beyond; and
//! forgets. `docs/pacing.md` tells it in words with its figures; the simulation in `tests/pacing.rs` holds it to them.

use limit::{Limit, Stretch};
use serde::{Deserialize, Serialize};

mod climb;
mod hold;
mod limit;
mod unnamed;

/// What the operator allows and where an untried budget starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Never above this rate.
    pub ceiling_per_s: f64,
    /// Never above this burst.
    pub ceiling_burst: f64,
    /// Never below this rate.
    pub floor_per_s: f64,
    /// The rate of a budget that was never tried.
    pub first_per_s: f64,
    /// Its burst.
    pub first_burst: f64,
}

/// What the store counted for a budget over all workers, cumulative and weighted by cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Heard {
    /// Tokens taken, less those given back.
    pub taken: u64,
    /// Cost of what was accepted.
    pub accepted: u64,
    /// Refusals about the key or account, of what was claimed since the last cut.
    pub throttled: u64,
    /// Throttles with a named wait that met no hold in force.
    pub episodes: u64,
    /// When the last episode began.
    pub episode_at_ms: u64,
    /// When the last hold ends or ended.
    pub hold_until_ms: u64,
    /// The last moment the pace was what kept a due job waiting.
    pub bound_at_ms: u64,
    /// The usual time from a claim to its settle, in ms: how late every answer is.
    pub answer_ms: u64,
}

/// The rate and burst in force and what the law remembers. Stored as JSON; a field an older version wrote is
/// ignored, one it did not write is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// Tokens a second.
    pub rate_per_s: f64,
    /// Tokens at once.
    pub burst: f64,
    /// What is kept to since the last refusal; `None`: nothing was refused yet.
    limit: Option<Limit>,
    /// For how long a limit is kept to before it is tried, and for how long it was.
    patience_ms: u64,
    kept_ms: u64,
    /// The last limit that was kept to for a while. If the next one differs it has moved: it is tried soon, and far.
    settled_per_s: f64,
    has_moved: bool,
    /// The sums when the level under trial began, and how far beyond the limit that is.
    trial: Option<Mark>,
    beyond: f64,
    /// How far the next trial goes at first.
    step: f64,
    /// The limit was found by a trial that went well.
    has_passed: bool,
    /// The rate that was refused last.
    refused_per_s: f64,
    raised_at_ms: u64,
    /// The episodes that were acted on.
    episodes: u64,
    /// Where the stretch of sending under way began, and at which rate: at the end of a hold; in a first start, which
    /// doubles the pace each beat, a moment ago, when the provider's bucket was still full.
    stretch: Mark,
    stretch_per_s: f64,
    nearer: Mark,
    nearer_per_s: f64,
    /// How long the sender was silent before the stretch.
    silent_ms: u64,
    /// The last stretch that a refusal ended, and the one before; what was accepted when it ended, and as of late.
    last: Option<Stretch>,
    before: Option<Stretch>,
    cut_accepted: u64,
    /// The last cut went to a limit that the hold tells nothing more about.
    is_known: bool,
    seen_accepted: u64,
    /// The last look at refusals that named no wait; whether it found some, so that what is accepted meanwhile is
    /// being measured. After a cut what it cleared up is waited for first.
    window: Mark,
    measures: bool,
    clearing_until_ms: u64,
    /// Refused requests count there, so that what is accepted meanwhile measures nothing.
    counts: bool,
}

/// The sums at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Mark {
    at_ms: u64,
    accepted: u64,
    throttled: u64,
}

/// Another pace.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What is in force and remembered from now on.
    pub pace: Pace,
    /// Why, in words for people; `None`: nothing that people need to see.
    pub cause: Option<String>,
    /// What was claimed before says nothing about the pace from now on.
    pub is_cut: bool,
}

/// How fast the law moves at least; a beat is also two answers and some tokens long.
const SHORTEST_BEAT_MS: u64 = 1_000;
const BEAT_TOKENS: f64 = 10.0;

impl Pace {
    /// Of a budget that was never tried.
    pub fn first(bounds: &Bounds) -> Self {
        Self { rate_per_s: bounds.first_per_s, burst: bounds.first_burst, ..Self::default() }
    }
}

/// The pace from now on; `None`: nothing changes. Called by any worker, some times a second and behind every
/// throttle; late, doubled and skipped calls do no harm.
pub fn adapt(bounds: &Bounds, pace: &Pace, heard: &Heard, now_ms: u64) -> Option<Change> {
    let law = Law { bounds, pace, heard, now_ms };
    let change = if heard.episodes > pace.episodes {
        Some(law.cut_for_episode())
    } else if now_ms < heard.hold_until_ms {
        law.learn_in_hold()
    } else if heard.episodes > 0 && pace.stretch.at_ms < heard.hold_until_ms {
        Some(law.begin_stretch())
    } else {
        law.look_at_unnamed().or_else(|| law.raise())
    };
    change.map(|change| law.bounded(change))
}

struct Law<'a> {
    bounds: &'a Bounds,
    pace: &'a Pace,
    heard: &'a Heard,
    now_ms: u64,
}

impl Law<'_> {
    /// No faster than twice what an answer takes, or the law would act on what it cannot see yet; and no faster than
    /// tokens come, which are all there is to learn from.
    fn beat_ms(&self) -> u64 {
        let tokens_ms = (BEAT_TOKENS * 1_000.0 / self.pace.rate_per_s) as u64;
        (2 * self.heard.answer_ms).max(tokens_ms).max(SHORTEST_BEAT_MS)
    }

    fn mark(&self, at_ms: u64) -> Mark {
        Mark { at_ms, accepted: self.heard.accepted, throttled: self.heard.throttled }
    }

    /// Where what was accepted so far was sent.
    fn mark_sent(&self) -> Mark {
        self.mark(self.now_ms.saturating_sub(self.heard.answer_ms))
    }

    fn bounded(&self, mut change: Change) -> Change {
        let Bounds { ceiling_per_s, floor_per_s, ceiling_burst, .. } = *self.bounds;
        change.pace.rate_per_s = change.pace.rate_per_s.max(floor_per_s).min(ceiling_per_s);
        change.pace.burst = change.pace.burst.max(1.0).min(ceiling_burst.max(1.0));
        change
    }
}

impl Change {
    /// Nothing that people need to see.
    fn quiet(pace: Pace) -> Self {
        Self { pace, cause: None, is_cut: false }
    }
}

/// A rate the way people read it.
fn rate(per_s: f64) -> String {
    if per_s >= 10.0 { format!("{per_s:.0}") } else { format!("{per_s:.2}") }
}
