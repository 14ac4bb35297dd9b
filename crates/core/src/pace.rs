//! The pace law: drives a budget just under the remote side's real limit without being told it.
//!
//! A refusal says two things: *slow down*, and, by what was accepted until then, *how far*. A provider's bucket lets
//! `burst + limit × time` through before it refuses, so two refused stretches of different length measure both
//! numbers. The law cuts at once, once per episode; goes to just under a measured limit; climbs slowly beyond; and
//! forgets. `docs/pacing.md` tells it in words with its figures; the simulation in `tests/pacing.rs` holds it to them.

use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// What is kept to since the last refusal; `None`: nothing was refused yet, or it has risen.
    limit: Option<Limit>,
    /// The last measured one before that: the next either agrees with it or does not.
    known_per_s: Option<f64>,
    /// For how long a limit is kept to before it is tried, and for how long it was.
    patience_ms: u64,
    kept_ms: u64,
    /// A rate that was kept to for its whole patience, and the last one that was refused: the limit lies between.
    good_per_s: f64,
    refused_per_s: f64,
    /// The sums when the limit was last tried, and how many trials of guesses were refused in a row.
    trial: Option<Mark>,
    refused_trials: u32,
    raised_at_ms: u64,
    /// The episodes that were acted on.
    episodes: u64,
    /// Where the stretch of sending under way began: at the end of a hold; in a first start, which doubles the pace each
    /// second, a moment ago, when the provider's bucket was still full.
    stretch: Mark,
    nearer: Mark,
    /// How long the sender was silent before the stretch.
    silent_ms: u64,
    /// The last stretch that a refusal ended, and the one before.
    last: Option<Stretch>,
    before: Option<Stretch>,
    /// The last look at refusals that named no wait; after a cut what it cleared up is waited for first.
    window: Mark,
    clearing_until_ms: u64,
}

/// The sums at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Mark {
    at_ms: u64,
    accepted: u64,
    throttled: u64,
}

/// What the remote side allows, as far as we know.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Limit {
    per_s: f64,
    /// `None`: it was not measured; it is a guess between what went well and what was refused.
    burst: Option<f64>,
}

/// A stretch of sending that ended in a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Stretch {
    seconds: f64,
    accepted: f64,
    /// How long the sender was silent before it; 0: the provider's bucket was full, as far as we know.
    silent_s: f64,
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

/// Just under a limit: the provider's clock and ours never agree to the last per cent.
const MARGIN: f64 = 0.99;
/// Of a measured burst: the first burst compresses on the wire.
const BURST_MARGIN: f64 = 0.8;
/// The first cut where nothing is measured yet, and of what was refused the part that the limit is guessed at.
const CUT: f64 = 0.6;
const GUESS: f64 = 0.85;
/// No cut is deeper, whatever was measured, because one odd moment must not lead to the floor; and none shallower.
const DEEPEST: f64 = 0.3;
const SHALLOWEST: f64 = 0.95;
/// A measurement above this part of the refused pace is none: the limit has just moved.
const PLAUSIBLE: f64 = 1.02;
/// Stretches measure the limit only if they differ by so much in length.
const DIFFERENT_S: f64 = 0.3;
/// Growth in a beat: while nothing was refused, and towards a limit.
const START_GROWTH: f64 = 2.0;
const RETURN_GROWTH: f64 = 1.5;
/// A cut is kept to for so many beats before the pace returns to a guess: a second refusal at a steady pace measures.
const CUT_BEATS: u64 = 2;
/// A guess is kept to for so many beats, then it goes half way to what was refused, until that is so near.
const GUESS_BEATS: u64 = 4;
const NEAR_REFUSED: f64 = 1.05;
/// A limit is tried after so long: the first one; one that differs from the one before; a guess. Each refused trial
/// makes the next one later, up to a bound.
const PATIENCE_FIRST_MS: u64 = 30_000;
const PATIENCE_MOVED_MS: u64 = 3_000;
const PATIENCE_GUESS_MS: u64 = 3_000;
const PATIENCE_MOST_MS: u64 = 120_000;
/// A trial goes so far beyond the limit. It ends in a refusal, or when so many bursts more were accepted than that allows.
const TRIAL: f64 = 2.0;
const TRIAL_BURSTS: f64 = 1.5;
/// A first start looks back once to twice as far for the beginning of what was refused.
const NEAR_MS: u64 = 500;
/// Two measurements agree within this.
const AGREES: f64 = 0.1;
/// Refusals without a named wait are looked at once a beat, and are too many above this share.
const SHARE: f64 = 0.02;
/// Above this part of the pace, what is accepted while others are refused is the limit; below, refusals count there.
const EXACT: f64 = 0.5;
const SHORTEST_BEAT_MS: u64 = 1_000;
/// The pace binds if it kept a job waiting so lately; it is raised no more often than this.
const BOUND_MS: u64 = 600;
const STEP_MS: u64 = 200;

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
    if heard.episodes > pace.episodes {
        return Some(law.bounded(law.cut_for_episode()));
    }
    let change = if now_ms < heard.hold_until_ms {
        law.learn_in_hold()
    } else if pace.last.is_some() && pace.stretch.at_ms < heard.hold_until_ms {
        Some(law.begin_stretch())
    } else {
        law.cut_for_share().or_else(|| law.raise())
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
    /// How fast the law moves: no faster than twice what an answer takes, or it would act on what it cannot see yet.
    fn beat_ms(&self) -> u64 {
        (2 * self.heard.answer_ms).max(SHORTEST_BEAT_MS)
    }

    fn mark(&self, at_ms: u64) -> Mark {
        Mark { at_ms, accepted: self.heard.accepted, throttled: self.heard.throttled }
    }

    fn bounded(&self, mut change: Change) -> Change {
        let Bounds { ceiling_per_s, floor_per_s, ceiling_burst, .. } = *self.bounds;
        change.pace.rate_per_s = change.pace.rate_per_s.max(floor_per_s).min(ceiling_per_s);
        change.pace.burst = change.pace.burst.max(1.0).min(ceiling_burst.max(1.0));
        change
    }

    /// The first throttle with a named wait, with everything then in flight: one signal, one cut, at once.
    fn cut_for_episode(&self) -> Change {
        let seconds = self.heard.episode_at_ms.saturating_sub(self.pace.stretch.at_ms) as f64 / 1_000.0;
        let silent_s = self.pace.silent_ms as f64 / 1_000.0;
        let last = Stretch { seconds, accepted: self.accepted_in_stretch(), silent_s };
        let mut pace = Pace {
            episodes: self.heard.episodes,
            before: self.pace.last,
            last: Some(last),
            known_per_s: self.pace.measured_per_s().or(self.pace.known_per_s),
            ..self.refused()
        };
        // A refused trial that measures nothing higher says that the limit is where it was: it was just kept to.
        let unmoved = self.pace.limit.filter(|limit| limit.burst.is_some() && self.pace.trial.is_some());
        let is_news = |limit: &Limit| unmoved.is_none_or(|old| limit.per_s > old.per_s * (1.0 - AGREES));
        let measured = self.measured(&pace).filter(is_news).or(unmoved);
        match measured {
            Some(limit) => pace.keep(limit, self.pace.patience_ms),
            None => self.guess(&mut pace),
        }
        let mut cause = format!("refused after {} accepted in {seconds:.1} s", last.accepted);
        cause.extend(measured.map(|limit| format!("; that measures {limit}")));
        self.cut(pace, &cause)
    }

    /// What was in flight when the hold began is accepted or refused while it stands: the measurement gets better.
    fn learn_in_hold(&self) -> Option<Change> {
        let last = Stretch { accepted: self.accepted_in_stretch(), ..self.pace.last? };
        if self.pace.last == Some(last) {
            return None;
        }
        let mut pace = Pace { last: Some(last), ..self.pace.clone() };
        // A better measurement is near the one at the cut; what is far from it is none.
        let is_near = |limit: &Limit| {
            pace.measured_per_s().is_none_or(|old| (limit.per_s / old - 1.0).abs() < 2.0 * AGREES)
        };
        let Some(limit) = self.measured(&pace).filter(is_near) else {
            return Some(Change { pace, cause: None, is_cut: false });
        };
        let patience_ms = if pace.measured_per_s().is_some() { pace.patience_ms } else { PATIENCE_FIRST_MS };
        pace.keep(limit, patience_ms);
        pace.patience_ms = patience_ms;
        let (before, after) = (self.pace.rate_per_s, pace.rate_per_s);
        let differs = (after / before - 1.0).abs() > 0.02;
        let cause = differs.then(|| format!("set {} → {}/s: {limit} is measured", rate(before), rate(after)));
        Some(Change { pace, cause, is_cut: false })
    }

    fn accepted_in_stretch(&self) -> f64 {
        self.heard.accepted.saturating_sub(self.pace.stretch.accepted) as f64
    }

    /// The pace as it is, refused.
    fn refused(&self) -> Pace {
        let refused_per_s = self.pace.rate_per_s;
        Pace { refused_per_s, trial: None, kept_ms: 0, raised_at_ms: self.now_ms, ..self.pace.clone() }
    }

    /// Nothing measures the limit: it lies between what went well and what was refused. The pace goes well below first.
    fn guess(&self, pace: &mut Pace) {
        let refused = pace.refused_per_s;
        if !(refused * 0.5..refused).contains(&pace.good_per_s) {
            pace.good_per_s = 0.0;
        }
        let per_s = if pace.good_per_s > 0.0 { pace.good_per_s } else { refused * GUESS };
        pace.limit = Some(Limit { per_s, burst: None });
        pace.rate_per_s = (refused * CUT).min(per_s);
        pace.burst = (pace.burst * CUT).max(1.0);
        pace.patience_ms = GUESS_BEATS * self.beat_ms();
        pace.refused_trials += u32::from(self.pace.trial.is_some());
    }

    fn cut(&self, pace: Pace, cause: &str) -> Change {
        let cause = format!("cut {} → {}/s: {cause}", rate(self.pace.rate_per_s), rate(pace.rate_per_s));
        Change { pace, cause: Some(cause), is_cut: true }
    }

    fn measured(&self, pace: &Pace) -> Option<Limit> {
        self.fit(pace.before?, pace.last?, pace.refused_per_s)
    }

    /// A bucket accepts `burst + limit × time` in a stretch that begins when it is full: two stretches give both.
    fn fit(&self, one: Stretch, other: Stretch, refused_per_s: f64) -> Option<Limit> {
        let seconds = other.seconds - one.seconds;
        // With answers that late the sums of a stretch hold some of the one before.
        if seconds.abs() < DIFFERENT_S || self.beat_ms() > SHORTEST_BEAT_MS {
            return None;
        }
        // What the bucket gained in a silence is at most what the limit gives: no limit is below that.
        let least_per_s = |stretch: Stretch| match stretch.silent_s {
            silent_s if silent_s > 0.0 => stretch.accepted / (stretch.seconds + silent_s),
            _ => 0.0,
        };
        let per_s = ((other.accepted - one.accepted) / seconds).max(least_per_s(other));
        let burst = other.accepted - per_s * other.seconds;
        let is_plausible = per_s > 0.0
            && per_s <= refused_per_s * PLAUSIBLE
            && (0.0..=2.0 * self.bounds.ceiling_burst).contains(&burst);
        is_plausible.then_some(Limit { per_s, burst: Some(burst) })
    }

    /// The hold is over: what is accepted from here on belongs to a new stretch.
    fn begin_stretch(&self) -> Change {
        let mark = self.mark(self.now_ms);
        // What was accepted since the hold ended was not in the last stretch, so it is in this one.
        let accepted = self.pace.stretch.accepted + self.pace.last.map_or(0.0, |last| last.accepted) as u64;
        let stretch = Mark { at_ms: self.heard.hold_until_ms, accepted, ..mark };
        let mut pace = Pace { stretch, window: mark, ..self.pace.clone() };
        pace.raised_at_ms = self.now_ms;
        pace.silent_ms = self.heard.hold_until_ms.saturating_sub(self.heard.episode_at_ms);
        Change { pace, cause: None, is_cut: false }
    }

    /// Refusals that name no wait: the sender goes on, so what is accepted meanwhile is the limit itself, unless
    /// refused requests count there too.
    fn cut_for_share(&self) -> Option<Change> {
        let (window, clearing_until_ms) = (&self.pace.window, self.pace.clearing_until_ms);
        if self.now_ms < clearing_until_ms {
            return None;
        }
        if window.at_ms < clearing_until_ms {
            let pace = Pace { window: self.mark(self.now_ms), ..self.pace.clone() };
            return Some(Change { pace, cause: None, is_cut: false });
        }
        let seconds = self.now_ms.checked_sub(window.at_ms)? as f64 / 1_000.0;
        let throttled = self.heard.throttled.saturating_sub(window.throttled) as f64;
        if seconds * 1_000.0 < self.beat_ms() as f64 || throttled == 0.0 {
            return None;
        }
        let accepted = self.heard.accepted.saturating_sub(window.accepted) as f64;
        let mut pace = Pace { window: self.mark(self.now_ms), ..self.refused() };
        if window.at_ms == 0 || throttled / (accepted + throttled) <= SHARE {
            let pace = Pace { window: pace.window, ..self.pace.clone() };
            return Some(Change { pace, cause: None, is_cut: false });
        }
        let per_s = accepted / seconds;
        if per_s >= pace.refused_per_s * EXACT {
            pace.known_per_s = self.pace.measured_per_s().or(self.pace.known_per_s);
            pace.keep(Limit { per_s, burst: Some(pace.burst) }, self.pace.patience_ms);
        } else {
            self.guess(&mut pace);
        }
        pace.clearing_until_ms = self.now_ms + CUT_BEATS * self.beat_ms();
        Some(self.cut(pace, &format!("{throttled} throttled and {accepted} accepted in {seconds:.1} s")))
    }

    /// Only where the pace is what binds: a limit is kept to and tried after a while; without one the pace grows.
    fn raise(&self) -> Option<Change> {
        let pace = self.pace;
        let is_bound = self.heard.bound_at_ms + BOUND_MS > self.now_ms;
        let step_ms = self.now_ms.checked_sub(pace.raised_at_ms)?;
        let is_highest =
            pace.rate_per_s >= self.bounds.ceiling_per_s && pace.burst >= self.bounds.ceiling_burst;
        if !is_bound || step_ms < STEP_MS || is_highest {
            return None;
        }
        let step_ms = step_ms.min(5 * STEP_MS);
        let mut next = Pace { raised_at_ms: self.now_ms, kept_ms: pace.kept_ms + step_ms, ..pace.clone() };
        let cause = match (pace.limit, pace.trial) {
            (None, _) => self.start(&mut next, step_ms),
            (Some(limit), Some(trial)) => self.is_passed(trial, limit).then(|| self.forget(&mut next, limit)),
            (Some(limit), None) if pace.rate_per_s < limit.per_s * MARGIN => {
                self.approach(&mut next, limit, step_ms);
                None
            }
            (Some(limit), None) => {
                (next.kept_ms >= pace.patience_ms).then(|| self.try_limit(&mut next, limit))
            }
        };
        Some(Change { pace: next, cause, is_cut: false })
    }

    fn growth(&self, per_beat: f64, step_ms: u64) -> f64 {
        per_beat.powf(step_ms as f64 / self.beat_ms() as f64)
    }

    /// Quickly, while nothing was refused.
    fn start(&self, next: &mut Pace, step_ms: u64) -> Option<String> {
        let (pace, ceiling) = (self.pace, self.bounds.ceiling_per_s);
        // Where something was refused before, less is unknown.
        let per_beat = if pace.refused_per_s > 0.0 { RETURN_GROWTH } else { START_GROWTH };
        let growth = self.growth(per_beat, step_ms);
        (next.rate_per_s, next.burst) = (pace.rate_per_s * growth, pace.burst * growth);
        if pace.nearer.at_ms + NEAR_MS <= self.now_ms {
            (next.stretch, next.nearer) = (pace.nearer, self.mark(self.now_ms));
        }
        let arrives = pace.rate_per_s < ceiling && next.rate_per_s >= ceiling;
        arrives.then(|| {
            format!("raised {} → {}/s: the ceiling, nothing refused", rate(pace.rate_per_s), rate(ceiling))
        })
    }

    /// Up to a limit that is a guess, after the cut was kept to for a while.
    fn approach(&self, next: &mut Pace, limit: Limit, step_ms: u64) {
        if next.kept_ms >= CUT_BEATS * self.beat_ms() {
            next.rate_per_s =
                (next.rate_per_s * self.growth(RETURN_GROWTH, step_ms)).min(limit.per_s * MARGIN);
            if next.rate_per_s >= limit.per_s * MARGIN {
                next.kept_ms = 0;
            }
        }
    }

    /// A guess goes half way to what was refused; what cannot be told from that is tried as a whole.
    fn try_limit(&self, next: &mut Pace, limit: Limit) -> String {
        // What went well left the provider's bucket full: a stretch that begins here measures well.
        (next.kept_ms, next.stretch, next.silent_ms) = (0, self.mark(self.now_ms), 0);
        next.good_per_s = next.rate_per_s;
        let before = rate(self.pace.rate_per_s);
        if limit.burst.is_none() && self.pace.refused_per_s > limit.per_s * NEAR_REFUSED {
            let per_s = f64::midpoint(limit.per_s, self.pace.refused_per_s);
            next.limit = Some(Limit { per_s, burst: None });
            next.rate_per_s = per_s * MARGIN;
            return format!("raised {before} → {}/s: half way to what was refused", rate(next.rate_per_s));
        }
        // Where no wait is named, refusals may count, and a trial locks the sender out for a while.
        let patience_ms = if self.pace.episodes > 0 {
            (PATIENCE_GUESS_MS << self.pace.refused_trials.min(5)).min(PATIENCE_FIRST_MS)
        } else {
            PATIENCE_FIRST_MS
        };
        if limit.burst.is_none() && self.pace.patience_ms < patience_ms {
            next.patience_ms = patience_ms;
            return format!("keeps to {before}/s: {}/s was refused", rate(self.pace.refused_per_s));
        }
        next.trial = Some(self.mark(self.now_ms));
        next.rate_per_s = limit.per_s * TRIAL;
        format!("raised {before} → {}/s: is {limit} still there?", rate(next.rate_per_s))
    }

    /// More was accepted in the trial than the limit and its burst allow.
    fn is_passed(&self, trial: Mark, limit: Limit) -> bool {
        let seconds = self.now_ms.saturating_sub(trial.at_ms) as f64 / 1_000.0;
        let accepted = self.heard.accepted.saturating_sub(trial.accepted) as f64;
        let burst = limit.burst.unwrap_or(self.pace.burst);
        seconds * 1_000.0 > self.beat_ms() as f64
            && accepted >= limit.per_s * seconds + burst * TRIAL_BURSTS + 2.0
    }

    /// The limit has risen: a new start from here.
    fn forget(&self, next: &mut Pace, limit: Limit) -> String {
        let here = self.mark(self.now_ms);
        (next.limit, next.last, next.before, next.good_per_s) = (None, None, None, 0.0);
        next.refused_trials = 0;
        (next.stretch, next.nearer, next.silent_ms) = (here, here, 0);
        format!("{limit} has risen: more was accepted")
    }
}

impl Pace {
    fn measured_per_s(&self) -> Option<f64> {
        self.limit.filter(|limit| limit.burst.is_some()).map(|limit| limit.per_s)
    }

    /// Just under a measured limit. One that agrees with what was known makes the next trial later.
    fn keep(&mut self, limit: Limit, patience_ms: u64) {
        self.patience_ms = match self.known_per_s {
            None => PATIENCE_FIRST_MS,
            Some(old) if (limit.per_s / old - 1.0).abs() >= AGREES => PATIENCE_MOVED_MS,
            Some(_) if patience_ms < PATIENCE_FIRST_MS => patience_ms * 3 / 2,
            Some(_) => (patience_ms * 2).min(PATIENCE_MOST_MS),
        };
        self.limit = Some(limit);
        self.rate_per_s =
            (limit.per_s * MARGIN).clamp(self.refused_per_s * DEEPEST, self.refused_per_s * SHALLOWEST);
        self.burst = (limit.burst.unwrap_or(self.burst) * BURST_MARGIN).max(1.0);
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.burst {
            Some(burst) => write!(f, "a limit of {}/s, burst {burst:.0}", rate(self.per_s)),
            None => write!(f, "a limit of about {}/s", rate(self.per_s)),
        }
    }
}

/// A rate the way people read it.
fn rate(per_s: f64) -> String {
    if per_s >= 10.0 { format!("{per_s:.0}") } else { format!("{per_s:.2}") }
}
