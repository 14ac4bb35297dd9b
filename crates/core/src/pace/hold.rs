//! Refusals that name their wait: one cut for each episode, and what the hold lets us learn.

use super::limit::{Limit, Stretch};
use super::unnamed::LOCKED_OUT;
use super::{Change, Law, Mark, Pace, rate};

/// The first cut where nothing is measured yet, and of what was refused the part that the limit is guessed at.
pub(super) const CUT: f64 = 0.6;
const GUESS: f64 = 0.85;
/// A refusal after so many beats at a limit says that it is a little lower; after so few, that it has moved.
const LONG_BEATS: u64 = 20;
const NUDGE: f64 = 0.97;
/// A better measurement, made in the hold, is as near to the one at the cut as this; what is far from it is none.
const NEAR: f64 = 0.2;
/// Answers that take so long measure the limit by what they bring in the hold, if they are so many.
const LONG_WAY_MS: u64 = 500;
const LONG_WAY_TOKENS: f64 = 20.0;
/// How late answers are settled.
const SETTLED_MS: u64 = 100;
/// An unknown burst is not taken for less than what the limit allows in so many seconds.
const LEAST_BURST_S: f64 = 0.25;
const COARSE_BURST: f64 = 2.0;
/// A limit that was kept to for so long was right.
const SETTLED_BEATS: u64 = 5;
/// And if it is refused then, it is a little lower.
pub(super) const LITTLE: f64 = 0.92;

impl Law<'_> {
    /// The first throttle with a named wait, with everything then in flight: one signal, one cut, at once.
    pub(super) fn cut_for_episode(&self) -> Change {
        let accepted = self.accepted_in_stretch();
        let mut pace = Pace {
            episodes: self.heard.episodes,
            cut_accepted: self.heard.accepted,
            seen_accepted: self.heard.accepted,
            ..self.refused()
        };
        let is_nothing = accepted == 0.0 || self.heard.accepted == self.pace.seen_accepted;
        if is_nothing && self.pace.last.is_some() && self.pace.trial.is_none() {
            let cause = Some("refused again before anything was accepted: the wait was too short".to_owned());
            return Change { pace, cause, is_cut: true };
        }
        let seconds = self.heard.episode_at_ms.saturating_sub(self.pace.stretch.at_ms) as f64 / 1_000.0;
        let silent_s = self.pace.silent_ms as f64 / 1_000.0;
        let last = Stretch { seconds, accepted, silent_s, slowest_per_s: self.pace.stretch_per_s };
        let known =
            self.limit_after_trial(self.heard.episode_at_ms).or_else(|| self.limit_after_long(seconds));
        // A gentle trial begins when the provider's bucket is nearly full at best: it is no stretch to measure by.
        if self.pace.trial.is_none() || self.pace.has_moved || self.pace.last.is_none() {
            (pace.before, pace.last) = (self.pace.last, Some(last));
        }
        pace.is_known = known.is_some();
        let measured = known.or_else(|| self.fit(&pace).filter(|_| !self.is_long_way()));
        match measured {
            Some(limit) => pace.keep(limit),
            None => self.guess(&mut pace, if self.is_settled() { LITTLE } else { GUESS }),
        }
        self.be_patient(&mut pace, measured.is_some());
        let mut cause = format!("refused after {accepted} accepted in {seconds:.1} s");
        cause.extend(measured.map(|limit| format!("; {limit}")));
        self.cut(pace, &cause)
    }

    /// What was in flight when the hold began is accepted or refused while it stands: the measurement gets better.
    pub(super) fn learn_in_hold(&self) -> Option<Change> {
        let all_ms = self.heard.episode_at_ms + self.heard.answer_ms + SETTLED_MS;
        if self.is_long_way() && !self.pace.is_known && self.now_ms >= all_ms {
            let mut pace = Pace { is_known: true, ..self.pace.clone() };
            let limit = self.limit_of_long_way(&pace);
            return Some(self.set(&mut pace, limit));
        }
        if self.pace.seen_accepted == self.heard.accepted {
            return None;
        }
        let accepted = self.accepted_in_stretch();
        let last = self.pace.last.map(|last| match self.pace.is_known {
            true => last,
            false => Stretch { accepted: accepted.max(last.accepted), ..last },
        });
        let mut pace = Pace { last, seen_accepted: self.heard.accepted, ..self.pace.clone() };
        let is_near = |limit: &Limit| {
            pace.limit.is_none_or(|old| !old.is_measured || (limit.per_s / old.per_s - 1.0).abs() < NEAR)
        };
        let is_open = !pace.is_known && !self.is_long_way();
        let better = self.fit(&pace).filter(|limit| is_open && is_near(limit));
        Some(self.set(&mut pace, better))
    }

    /// The hold is over: what is accepted from here on belongs to a new stretch.
    pub(super) fn begin_stretch(&self) -> Change {
        let mark = self.mark(self.now_ms);
        // What was accepted since the hold ended was not in the last stretch, so it is in this one.
        let stretch = Mark { at_ms: self.heard.hold_until_ms, accepted: self.pace.seen_accepted, ..mark };
        let mut pace = Pace { stretch, window: mark, measures: false, ..self.pace.clone() };
        let late =
            if self.pace.is_known || !self.is_long_way() { None } else { self.limit_of_long_way(&pace) };
        let change = self.set(&mut pace, late);
        let mut pace = change.pace;
        (pace.raised_at_ms, pace.stretch_per_s) = (self.now_ms, pace.rate_per_s);
        pace.silent_ms = self.heard.hold_until_ms.saturating_sub(self.heard.episode_at_ms);
        Change { pace, ..change }
    }

    fn is_long_way(&self) -> bool {
        self.heard.answer_ms >= LONG_WAY_MS
    }

    /// A long way holds much that was sent to an empty bucket: what is accepted of it in one answer's time is the
    /// limit. Where next to nothing is, refusals count there, and nothing measures.
    fn limit_of_long_way(&self, pace: &Pace) -> Option<Limit> {
        let answer_s = (self.heard.answer_ms as f64 / 1_000.0).min(pace.last?.seconds).max(0.1);
        let accepted = pace.seen_accepted.saturating_sub(pace.cut_accepted) as f64;
        let share = accepted / (answer_s * pace.refused_per_s);
        if !(LOCKED_OUT..1.0).contains(&share) {
            return None;
        }
        if accepted < LONG_WAY_TOKENS {
            return self.fit(pace);
        }
        let per_s = accepted / answer_s;
        Some(self.measured_while_refused(per_s, pace.last?))
    }

    /// What is accepted while others are refused is the limit. A bucket for one or two runs over between two requests,
    /// so that less is accepted.
    pub(super) fn measured_while_refused(&self, per_s: f64, last: Stretch) -> Limit {
        let burst = last.burst(per_s);
        Limit { per_s, burst: self.burst(burst, per_s), is_measured: burst >= COARSE_BURST }
    }

    /// A burst that can be: what was measured, but no less than an unknown one is taken for.
    pub(super) fn burst(&self, burst: f64, per_s: f64) -> f64 {
        burst.max(per_s * LEAST_BURST_S).min(self.bounds.ceiling_burst).max(1.0)
    }

    fn set(&self, pace: &mut Pace, limit: Option<Limit>) -> Change {
        let before = self.pace.rate_per_s;
        let Some(limit) = limit else { return Change::quiet(pace.clone()) };
        pace.keep(limit);
        self.be_patient(pace, true);
        let differs = (pace.rate_per_s / before - 1.0).abs() > 0.02;
        let cause = differs
            .then(|| format!("set {} → {}/s: {limit} is measured", rate(before), rate(pace.rate_per_s)));
        Change { pace: pace.clone(), cause, is_cut: false }
    }

    fn accepted_in_stretch(&self) -> f64 {
        self.heard.accepted.saturating_sub(self.pace.stretch.accepted) as f64
    }

    pub(super) fn is_settled(&self) -> bool {
        self.pace.kept_ms >= SETTLED_BEATS * self.beat_ms()
    }

    /// The pace as it is, refused.
    pub(super) fn refused(&self) -> Pace {
        let pace = self.pace;
        let settled = pace.limit.filter(|_| pace.trial.is_some() || self.is_settled());
        Pace {
            refused_per_s: pace.rate_per_s,
            settled_per_s: settled.map_or(pace.settled_per_s, |limit| limit.per_s),
            trial: None,
            kept_ms: 0,
            raised_at_ms: self.now_ms,
            ..pace.clone()
        }
    }

    /// A limit that was kept to for long is a little lower than was thought.
    pub(super) fn limit_after_long(&self, seconds: f64) -> Option<Limit> {
        let limit = self.pace.limit.filter(|_| self.pace.trial.is_none())?;
        let is_long = seconds * 1_000.0 >= (LONG_BEATS * self.beat_ms()) as f64;
        is_long.then_some(Limit { per_s: limit.per_s * NUDGE, ..limit })
    }

    /// Nothing measures the limit: the pace goes well below what was refused, and returns to a guess.
    pub(super) fn guess(&self, pace: &mut Pace, part: f64) {
        let per_s = pace.refused_per_s * part;
        let burst = match (self.pace.limit, pace.last) {
            // What it let pass was too much, so it was too small.
            (Some(limit), _) if pace.has_passed => self.burst(2.0 * limit.burst, per_s),
            (Some(limit), _) => self.burst(limit.burst, per_s),
            (None, Some(last)) => self.burst(last.burst(per_s), per_s),
            (None, None) => self.burst(0.0, per_s),
        };
        pace.has_passed = false;
        pace.rate_per_s = pace.refused_per_s * CUT;
        pace.burst = (pace.burst * CUT).max(1.0);
        pace.limit = Some(Limit { per_s, burst, is_measured: false });
    }

    pub(super) fn cut(&self, pace: Pace, cause: &str) -> Change {
        let cause = format!("cut {} → {}/s: {cause}", rate(self.pace.rate_per_s), rate(pace.rate_per_s));
        Change { pace, cause: Some(cause), is_cut: true }
    }
}
