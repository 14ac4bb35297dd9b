//! Charts, drawn here as SVG. They stretch with the page, so texts stand around them and not in them; every
//! number a chart shows stands in a table or sentence, too.

use super::traffic::Minute;
use super::words::{count, many, minute_of, rate, short, time_of};
use maud::{Markup, html};
use paceline_store::PaceDecision;
use std::fmt::Write;

/// Units of a drawing; the page gives it its size.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;
/// A few of many would be thinner than a line.
const LEAST: f64 = 2.0;

/// Attempts a minute: accepted, throttled on top, everything else above.
pub(super) fn traffic(minutes: &[Minute], told: &str) -> Markup {
    let most = minutes.iter().map(Minute::attempts).max().unwrap_or(0).max(1);
    let step = WIDTH / minutes.len().max(1) as f64;
    let body = html! {
        @for (index, minute) in minutes.iter().enumerate().filter(|(_, minute)| minute.attempts() > 0) {
            g aria-hidden="true" transform={ "translate(" (fixed(index as f64 * step)) " 0)" } {
                title {
                    (time_of(minute.began_ms)) ": " (many(minute.attempts(), "attempt", "attempts")) ", "
                    (count(minute.throttled)) " throttled"
                }
                @for (tone, y, height) in stack(minute, most) {
                    rect class=(tone) x=(fixed(step * 0.1)) y=(fixed(y)) width=(fixed(step * 0.8)) height=(fixed(height)) {}
                }
            }
        }
    };
    let span = minutes.first().zip(minutes.last()).map(|(first, last)| (first.began_ms, last.began_ms));
    figure(&format!("{}/min", count(most)), span, told, body)
}

/// The parts of a minute's bar, each standing on the one before: tone, top and height.
fn stack(minute: &Minute, most: u64) -> Vec<(&'static str, f64, f64)> {
    let parts = [("good", minute.accepted), ("wait", minute.throttled), ("bad", minute.other)];
    let mut top = HEIGHT;
    let mut stack = Vec::new();
    for (tone, n) in parts.into_iter().filter(|(_, n)| *n > 0) {
        let height = (n as f64 / most as f64 * HEIGHT).max(LEAST);
        top -= height;
        stack.push((tone, top, height));
    }
    stack
}

/// What the pace chart shows.
pub(super) struct Pace<'a> {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    pub(super) pace_per_s: f64,
    pub(super) ceiling_per_s: f64,
    /// Newest first, as the store gives them.
    pub(super) decisions: &'a [PaceDecision],
}

impl Pace<'_> {
    /// The pace as steps, under its ceiling; each decision is a dot.
    pub(super) fn draw(&self, told: &str) -> Markup {
        let shown = || self.decisions.iter().rev().filter(|made| made.at_ms >= self.from_ms);
        let body = html! {
            path.ceiling d={ "M0 " (self.y(self.ceiling_per_s)) "H" (WIDTH) } {}
            path.area d={ (self.line()) "V" (HEIGHT) "H0Z" } {}
            path.line d=(self.line()) {}
            @for made in shown() {
                @let tone = if made.to_per_s < made.from_per_s { "wait" } else { "good" };
                path aria-hidden="true" class={ "dot " (tone) } d={ "M" (self.x(made.at_ms)) " " (self.y(made.to_per_s)) "h0" } {
                    title { (time_of(made.at_ms)) " " (change(made)) ": " (made.cause) }
                }
            }
        };
        figure(&rate(self.top()), Some((self.from_ms, self.to_ms)), told, body)
    }

    fn line(&self) -> String {
        let mut made = self.decisions.iter().rev().skip_while(|made| made.at_ms < self.from_ms).peekable();
        let first = made.peek().map_or(self.pace_per_s, |made| made.from_per_s);
        let mut line = format!("M0 {}", self.y(first));
        for made in made {
            // Writing to a String cannot fail.
            let _ = write!(line, "H{}V{}", self.x(made.at_ms), self.y(made.to_per_s));
        }
        line + &format!("V{}H{WIDTH}", self.y(self.pace_per_s))
    }

    /// A little above everything that is shown.
    fn top(&self) -> f64 {
        let shown = self.decisions.iter().flat_map(|made| [made.from_per_s, made.to_per_s]);
        shown.fold(self.ceiling_per_s.max(self.pace_per_s), f64::max) * 1.05
    }

    fn x(&self, at_ms: u64) -> String {
        let span = self.to_ms.saturating_sub(self.from_ms).max(1) as f64;
        fixed(at_ms.saturating_sub(self.from_ms) as f64 / span * WIDTH)
    }

    fn y(&self, per_s: f64) -> String {
        fixed(HEIGHT - per_s / self.top() * HEIGHT)
    }
}

/// `100/s → 50/s`
pub(super) fn change(made: &PaceDecision) -> String {
    format!("{} → {}", rate(made.from_per_s), rate(made.to_per_s))
}

/// Pace against its ceiling, with what is really sent as a mark.
pub(super) fn bullet(pace_per_s: f64, ceiling_per_s: f64, sent_per_s: f64) -> Markup {
    let of = |per_s: f64| (per_s / ceiling_per_s.max(pace_per_s)).clamp(0.0, 1.0) * 100.0;
    let told = format!(
        "pace {} of at most {}; sent {} a second in the last minute",
        rate(pace_per_s),
        rate(ceiling_per_s),
        short(sent_per_s)
    );
    html! {
        svg.bullet viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label=(told) {
            rect.track y="2" width="100" height="8" {}
            rect.pace y="2" width=(fixed(of(pace_per_s))) height="8" {}
            @if sent_per_s > 0.0 { path.sent d={ "M" (fixed(of(sent_per_s))) " 0V12" } {} }
        }
    }
}

/// A drawing between its greatest value and its times.
fn figure(top: &str, span: Option<(u64, u64)>, told: &str, body: Markup) -> Markup {
    html! {
        figure.chart {
            span.top aria-hidden="true" { (top) }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(told) {
                path.grid d={ "M0 0H" (WIDTH) "M0 " (HEIGHT / 2.0) "H" (WIDTH) "M0 " (HEIGHT) "H" (WIDTH) } {}
                (body)
            }
            @if let Some((from_ms, to_ms)) = span {
                figcaption aria-hidden="true" {
                    @for at_ms in [from_ms, from_ms.midpoint(to_ms), to_ms] { span { (minute_of(at_ms)) } }
                }
            }
        }
    }
}

/// No more digits than a pixel has.
fn fixed(number: f64) -> String {
    format!("{number:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_a_line_of_steps_that_ends_at_the_pace_in_force() {
        let made = |at_ms, from_per_s, to_per_s| PaceDecision {
            at_ms,
            from_per_s,
            to_per_s,
            burst: 1.0,
            cause: "<b>".into(),
        };
        let decisions = [made(150, 50.0, 100.0), made(100, 100.0, 50.0), made(10, 20.0, 100.0)];
        let pace =
            Pace { from_ms: 50, to_ms: 250, pace_per_s: 100.0, ceiling_per_s: 100.0, decisions: &decisions };
        assert_eq!(pace.line(), "M0 4.8H150.0V52.4H300.0V4.8V4.8H600");
        let drawn = pace.draw("told").into_string();
        assert_eq!(drawn.matches("class=\"dot ").count(), 2, "{drawn}");
        assert!(drawn.contains("&lt;b&gt;") && !drawn.contains("<b>"), "{drawn}");
    }
}
