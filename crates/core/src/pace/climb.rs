//! The way up: a start, the return to a guess, and the trials of a limit.

use super::limit::{Limit, MARGIN};
use super::{Change, Law, Mark, Pace, SHORTEST_BEAT_MS, rate};

/// Growth in a beat: while nothing was refused, and towards a guess.
const START_GROWTH: f64 = 2.0;
const RETURN_GROWTH: f64 = 1.5;
/// A cut is kept to for so many beats before the pace returns to a guess: a second refusal at a steady pace measures.
const CUT_BEATS: u64 = 2;
/// A guess is kept to for so many beats.
const GUESS_BEATS: u64 = 4;
/// A measured limit is kept to for so long, one that has just moved for less, and longer after each refused trial.
const PATIENCE_FIRST_MS: u64 = 30_000;
const PATIENCE_MOVED_MS: u64 = 3_000;
const PATIENCE_MOST_MS: u64 = 900_000;
/// A limit has moved when it differs by so much from the one before.
const MOVED: f64 = 0.2;
/// A refused trial is paid for by what is sent until the next: so often the hold it cost, an answer's time (all that
/// is on the way may be refused), and so many tokens.
const PAYS_HOLD: u64 = 45;
const PAYS_ANSWER: u64 = 150;
const PAYS_TOKENS: f64 = 200.0;
/// A trial goes so far beyond the limit, and twice as far with each level that passes; where it has moved, far at once.
const GENTLE: f64 = 0.04;
const GENTLEST: f64 = 0.02;
const FAR: f64 = 1.0;
/// What was refused so far above the limit says little about it: the next trial comes soon.
const FAR_ABOVE: f64 = 1.1;
/// A level passes when so many bursts more were accepted than the limit below it allows.
const PASS_BURSTS: f64 = 1.5;
/// A level that lasted so many beats measures the limit by what was accepted.
const MEASURED_BEATS: u64 = 5;
/// A first start looks back once to twice as far for the beginning of what was refused.
const NEAR_MS: u64 = 500;
/// The pace binds if it kept a job waiting so lately; it is raised no more often than this.
const BOUND_MS: u64 = 600;
const STEP_MS: u64 = 200;

impl Law<'_> {
    /// Only where the pace is what binds: a limit is kept to and tried after a while; without one the pace grows.
    pub(super) fn raise(&self) -> Option<Change> {
        let pace = self.pace;
        let bound_ms = BOUND_MS.max((1_500.0 / pace.rate_per_s) as u64);
        let is_bound = self.heard.bound_at_ms + bound_ms > self.now_ms;
        let step_ms = self.now_ms.checked_sub(pace.raised_at_ms)?;
        let is_highest =
            pace.rate_per_s >= self.bounds.ceiling_per_s && pace.burst >= self.bounds.ceiling_burst;
        if !is_bound || step_ms < STEP_MS || is_highest || self.now_ms < pace.clearing_until_ms {
            return None;
        }
        let step_ms = step_ms.min(5 * STEP_MS);
        let mut next = Pace { raised_at_ms: self.now_ms, kept_ms: pace.kept_ms + step_ms, ..pace.clone() };
        let cause = match (pace.limit, pace.trial) {
            (None, _) => self.start(&mut next, step_ms),
            (Some(limit), Some(level)) => self.is_passed(level, limit).then(|| self.pass(&mut next, limit)),
            (Some(limit), None) if pace.rate_per_s < limit.per_s * MARGIN * 0.999 && !limit.is_measured => {
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
        let growth = self.growth(START_GROWTH, step_ms);
        (next.rate_per_s, next.burst) = (pace.rate_per_s * growth, pace.burst * growth);
        if pace.nearer.at_ms + NEAR_MS + self.heard.answer_ms <= self.now_ms {
            (next.stretch, next.stretch_per_s) = (pace.nearer, pace.nearer_per_s);
            (next.nearer, next.nearer_per_s) = (self.mark_sent(), pace.rate_per_s);
        }
        let arrives = pace.rate_per_s < ceiling && next.rate_per_s >= ceiling;
        arrives.then(|| {
            format!("raised {} → {}/s: the ceiling, nothing refused", rate(pace.rate_per_s), rate(ceiling))
        })
    }

    /// Up to a limit that is a guess, after the cut was kept to for a while.
    fn approach(&self, next: &mut Pace, limit: Limit, step_ms: u64) {
        if next.kept_ms < CUT_BEATS * self.beat_ms() {
            return;
        }
        next.rate_per_s = (next.rate_per_s * self.growth(RETURN_GROWTH, step_ms)).min(limit.per_s * MARGIN);
        if next.rate_per_s >= limit.per_s * MARGIN * 0.999 {
            next.kept_ms = 0;
        }
    }

    /// The first level of a trial. What was kept to left the provider's bucket full.
    fn try_limit(&self, next: &mut Pace, limit: Limit) -> String {
        next.beyond = if self.pace.has_moved { FAR } else { self.nearer_to_refused(next.step, limit) };
        self.climb(next, limit);
        format!(
            "raised {} → {}/s: is {limit} still there?",
            rate(self.pace.rate_per_s),
            rate(next.rate_per_s)
        )
    }

    /// No more than half way to what was refused, until that is near.
    fn nearer_to_refused(&self, beyond: f64, limit: Limit) -> f64 {
        let gap = self.pace.refused_per_s / limit.per_s - 1.0;
        if gap > 2.0 * GENTLEST && !self.pace.has_moved { beyond.min(gap / 2.0) } else { beyond }
    }

    fn climb(&self, next: &mut Pace, limit: Limit) {
        next.trial = Some(self.mark_sent());
        (next.stretch, next.silent_ms, next.kept_ms) = (self.mark_sent(), 0, 0);
        next.rate_per_s = (limit.per_s * (1.0 + next.beyond)).min(self.bounds.ceiling_per_s);
        next.stretch_per_s = next.rate_per_s;
    }

    /// More was accepted at this level than the limit and its burst allow.
    fn is_passed(&self, level: Mark, limit: Limit) -> bool {
        let ms = self.now_ms.saturating_sub(level.at_ms);
        let accepted = self.heard.accepted.saturating_sub(level.accepted) as f64;
        // What is on the way was not refused yet.
        let seconds = ms.saturating_sub(self.heard.answer_ms) as f64 / 1_000.0;
        ms > self.beat_ms() && accepted >= limit.per_s * seconds + limit.burst * PASS_BURSTS + 2.0
    }

    /// The limit is at least as high as this level: twice as far beyond it next.
    fn pass(&self, next: &mut Pace, limit: Limit) -> String {
        let passed = Limit { per_s: self.pace.rate_per_s, ..limit };
        (next.limit, next.has_passed, next.counts) = (Some(passed), true, false);
        next.beyond = self.nearer_to_refused((2.0 * next.beyond).min(FAR), passed);
        self.climb(next, passed);
        format!("raised {} → {}/s: more than {limit} was accepted", rate(passed.per_s), rate(next.rate_per_s))
    }

    /// A refused trial says that the limit is where it was, or where the last level passed; a long level says more.
    pub(super) fn limit_after_trial(&self, refused_at_ms: u64) -> Option<Limit> {
        let (level, limit) = (self.pace.trial?, self.pace.limit?);
        let ms = refused_at_ms.saturating_sub(level.at_ms);
        let accepted = self.heard.accepted.saturating_sub(level.accepted) as f64;
        let per_s = (accepted - limit.burst) * 1_000.0 / ms.max(1) as f64;
        let is_long = ms >= MEASURED_BEATS * self.beat_ms();
        let per_s = if is_long { per_s.clamp(limit.per_s, self.pace.rate_per_s) } else { limit.per_s };
        Some(Limit { per_s, is_measured: true, ..limit })
    }

    /// How long the limit of a refused pace is kept to.
    pub(super) fn be_patient(&self, pace: &mut Pace, is_fit: bool) {
        let was_trial = self.pace.trial.is_some();
        let is_measured = pace.limit.is_some_and(|limit| limit.is_measured);
        let hold_ms = self.heard.hold_until_ms.saturating_sub(self.heard.episode_at_ms).max(SHORTEST_BEAT_MS);
        let paid_ms = (PAYS_HOLD * hold_ms)
            .max(PAYS_ANSWER * self.heard.answer_ms)
            .max((PAYS_TOKENS * 1_000.0 / pace.refused_per_s) as u64);
        let per_s = pace.limit.map_or(0.0, |limit| limit.per_s);
        if is_fit && pace.settled_per_s > 0.0 && (per_s / pace.settled_per_s - 1.0).abs() > MOVED {
            (pace.has_moved, pace.settled_per_s) = (true, per_s);
        }
        pace.patience_ms = match (pace.has_moved, was_trial) {
            (true, false) => PATIENCE_MOVED_MS,
            (true, true) => self.pace.patience_ms * 3 / 2,
            (false, true) if pace.refused_per_s > per_s * FAR_ABOVE => GUESS_BEATS * self.beat_ms(),
            (false, true) => (2 * self.pace.patience_ms).max(paid_ms).min(PATIENCE_MOST_MS),
            (false, false) if is_measured => PATIENCE_FIRST_MS,
            (false, false) => GUESS_BEATS * self.beat_ms(),
        };
        // Each refused trial is a better guess, so the next one need not go as far.
        pace.step = match was_trial && !pace.has_moved {
            true => (pace.step / 2.0).max(GENTLEST),
            false if is_measured => GENTLE,
            false => 2.0 * GENTLE,
        };
        pace.has_moved &= pace.patience_ms < PATIENCE_FIRST_MS;
    }
}
