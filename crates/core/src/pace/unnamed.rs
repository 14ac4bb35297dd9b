//! Refusals that name no wait: what is accepted while others are refused is the limit, unless refusals count there too.

use super::hold::{CUT, LITTLE};
use super::limit::{Limit, Stretch};
use super::{Change, Law, Pace, SHORTEST_BEAT_MS};

/// Too many are refused above this share, of so many answers at least.
const SHARE: f64 = 0.005;
const LEAST_ANSWERS: f64 = 50.0;
/// Below this part of the pace, what is accepted is no measurement: refused requests count there.
pub(super) const LOCKED_OUT: f64 = 0.15;
/// What is sent while a cut clears up, of the rate that was refused.
const CLEARING: f64 = 0.2;

impl Law<'_> {
    pub(super) fn look_at_unnamed(&self) -> Option<Change> {
        let pace = self.pace;
        if self.now_ms < pace.clearing_until_ms {
            return None;
        }
        if pace.window.at_ms < pace.clearing_until_ms {
            return Some(self.end_clearing());
        }
        let throttled = self.heard.throttled.saturating_sub(pace.window.throttled) as f64;
        let passed_ms = self.now_ms.saturating_sub(pace.window.at_ms);
        if throttled == 0.0 {
            return (passed_ms >= self.beat_ms()).then(|| self.look_again(false));
        }
        if let (true, Some(limit)) = (pace.window.at_ms > 0, self.limit_after_trial(self.now_ms)) {
            let mut pace = self.refused();
            pace.keep(limit);
            return Some(self.clear(pace, &format!("refused; {limit}")));
        }
        if !pace.measures || pace.window.at_ms == 0 {
            return Some(self.look_again(true));
        }
        let accepted = self.heard.accepted.saturating_sub(pace.window.accepted) as f64;
        let is_enough = passed_ms >= self.beat_ms()
            && (accepted + throttled >= LEAST_ANSWERS || passed_ms >= 10 * self.beat_ms());
        is_enough.then(|| self.judge(accepted, throttled, passed_ms as f64 / 1_000.0))
    }

    fn look_again(&self, measures: bool) -> Change {
        let mut pace = Pace { window: self.mark(self.now_ms), measures, ..self.pace.clone() };
        if measures {
            let since = pace.stretch;
            let ms = self.now_ms.saturating_sub(since.at_ms + self.heard.answer_ms);
            let accepted = self.heard.accepted.saturating_sub(since.accepted) as f64;
            let silent_s = pace.silent_ms as f64 / 1_000.0;
            let slowest_per_s = pace.stretch_per_s;
            pace.last = Some(Stretch { seconds: ms as f64 / 1_000.0, accepted, silent_s, slowest_per_s });
        }
        Change::quiet(pace)
    }

    fn judge(&self, accepted: f64, throttled: f64, seconds: f64) -> Change {
        if throttled / (accepted + throttled) <= SHARE || throttled < 2.0 {
            return self.look_again(false);
        }
        let cause = format!("{throttled} throttled and {accepted} accepted in {seconds:.1} s");
        let per_s = accepted / seconds;
        let mut pace = self.refused();
        if self.pace.counts || per_s < pace.refused_per_s * LOCKED_OUT {
            self.guess(&mut pace, if self.is_settled() { LITTLE } else { CUT });
            pace.counts = true;
            return self.clear(pace, &cause);
        }
        let measured = match (self.pace.limit, pace.last) {
            (None, Some(last)) => self.measured_while_refused(per_s, last),
            (limit, _) => {
                let burst = self.burst(limit.map_or(0.0, |limit| limit.burst), per_s);
                Limit { per_s, burst, is_measured: true }
            }
        };
        pace.keep(measured);
        self.finish(pace, true, &cause)
    }

    /// As though a wait had been named: refused requests may count there, and then only silence opens the door.
    fn clear(&self, mut pace: Pace, cause: &str) -> Change {
        pace.rate_per_s = pace.refused_per_s * CLEARING;
        self.finish(pace, false, cause)
    }

    fn clearing_ms(&self) -> u64 {
        SHORTEST_BEAT_MS.max(2 * self.heard.answer_ms)
    }

    fn finish(&self, mut pace: Pace, is_measured: bool, cause: &str) -> Change {
        self.be_patient(&mut pace, is_measured);
        pace.clearing_until_ms = self.now_ms + self.clearing_ms();
        pace.window = self.mark(self.now_ms);
        pace.measures = false;
        self.cut(pace, cause)
    }

    /// Back to the limit, if nothing was refused any more.
    fn end_clearing(&self) -> Change {
        let mark = self.mark(self.now_ms);
        if self.pace.counts && self.heard.throttled > self.pace.window.throttled {
            let rate_per_s = self.pace.rate_per_s * CUT;
            let clearing_until_ms = self.now_ms + self.clearing_ms();
            return Change::quiet(Pace { rate_per_s, clearing_until_ms, window: mark, ..self.pace.clone() });
        }
        let mut pace = Pace { window: mark, measures: false, ..self.pace.clone() };
        (pace.stretch, pace.silent_ms, pace.raised_at_ms) = (self.mark_sent(), 0, self.now_ms);
        if let Some(limit) = pace.limit {
            pace.keep(limit);
        }
        pace.stretch_per_s = pace.rate_per_s;
        Change::quiet(pace)
    }
}
