//! A rehearsal as a picture: what was sent, accepted and throttled each second, the real limit, the holds and our
//! decisions; the naive sender below in the same scales. SVG, readable on light and dark.

use crate::launch::Launch;
use crate::ledger::LedgerSecond;
use std::fmt::Write;

/// One sender's part of the picture.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// When it began, in s since the epoch.
    pub began_s: f64,
    /// What arrived each second.
    pub timeline: Vec<LedgerSecond>,
    /// From when to when something was held, in s since the beginning.
    pub holds_s: Vec<(f64, f64)>,
    /// Decisions, in s since the beginning, with their words.
    pub decisions: Vec<(f64, String)>,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 20.0;
const GAP: f64 = 64.0;
/// By class and not by variable, because not every viewer of SVG knows those.
const STYLE: &str = "\
svg { font: 12px system-ui, 'DejaVu Sans', sans-serif } text { fill: #1c2733 } text.soft { fill: #6b7885 } rect.paper { fill: #fff }
.grid { stroke: #e1e6ea } .sent { stroke: #7a8794; fill: none; stroke-width: 1.2; stroke-dasharray: 4 3 }
.accepted { stroke: #1a7f4b; fill: none; stroke-width: 2 } .throttled { fill: #c8372d }
.limit { stroke: #8250df; fill: none; stroke-width: 1.5 } .hold { fill: #f2c14e; opacity: .45 }
.mark { stroke: #0b62c4 } .dot { fill: #0b62c4 }
.key-accepted { fill: #1a7f4b } .key-sent { fill: #7a8794 } .key-limit { fill: #8250df }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } text.soft { fill: #8b98a5 } rect.paper { fill: #0d1117 }
  .grid { stroke: #2b3138 } .sent { stroke: #9aa7b4 } .accepted { stroke: #3fb96f } .throttled { fill: #ff6b61 }
  .limit { stroke: #b392f0 } .hold { fill: #8a6d1d } .mark { stroke: #58a6ff } .dot { fill: #58a6ff }
  .key-accepted { fill: #3fb96f } .key-sent { fill: #9aa7b4 } .key-limit { fill: #b392f0 } }";

/// The picture.
pub fn draw(launch: &Launch, panels: &[Panel]) -> String {
    let last =
        |panel: &Panel| panel.timeline.last().map_or(0.0, |second| second.at_s as f64 + 1.0 - panel.began_s);
    let end_s = panels.iter().map(last).fold(10.0, f64::max).ceil();
    let most = |panel: &Panel| panel.timeline.iter().map(|second| second.arrivals).max().unwrap_or(0) as f64;
    let limits = (0..end_s as u64).map(|at_s| launch.limit_at(at_s as f64)).fold(0.0, f64::max);
    // A naive sender may shoot far above: the picture is about the limit.
    let top = panels.iter().map(most).fold(limits * 1.2, f64::max).min(limits * 4.0);
    let scale = Scale { end_s, top };
    let height = panels.len() as f64 * (HEIGHT + GAP) + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"requests a second over time\">\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate(0 {})\">", 36.0 + index as f64 * (HEIGHT + GAP));
        panel_of(&mut svg, launch, panel, &scale);
        svg.push_str("</g>\n");
    }
    legend(&mut svg, height - 16.0);
    svg.push_str("</svg>\n");
    svg
}

struct Scale {
    end_s: f64,
    top: f64,
}

impl Scale {
    fn x(&self, at_s: f64) -> f64 {
        LEFT + at_s.clamp(0.0, self.end_s) / self.end_s * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, per_s: f64) -> f64 {
        HEIGHT - per_s.min(self.top) / self.top * HEIGHT
    }
}

fn panel_of(svg: &mut String, launch: &Launch, panel: &Panel, scale: &Scale) {
    let _ =
        writeln!(svg, "<text x=\"{LEFT}\" y=\"-12\" font-weight=\"600\">{}</text>", escaped(&panel.title));
    for (from, to) in &panel.holds_s {
        let (x, width) = (scale.x(*from), (scale.x(*to) - scale.x(*from)).max(1.0));
        let _ = writeln!(
            svg,
            "<rect class=\"hold\" x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{HEIGHT}\"/>"
        );
    }
    axes(svg, scale);
    let at = |second: &LedgerSecond| second.at_s as f64 + 0.5 - panel.began_s;
    let width = ((WIDTH - LEFT - RIGHT) / scale.end_s * 0.8).max(1.0);
    for second in panel.timeline.iter().filter(|second| second.throttled > 0) {
        let y = scale.y(second.throttled as f64);
        let x = scale.x(at(second)) - width / 2.0;
        let _ = writeln!(
            svg,
            "<rect class=\"throttled\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
            (HEIGHT - y).max(2.0)
        );
    }
    let points = |read: fn(&LedgerSecond) -> u64| {
        panel.timeline.iter().map(|second| (at(second), read(second) as f64)).collect::<Vec<_>>()
    };
    line(svg, "sent", &points(|second| second.arrivals), scale);
    line(svg, "accepted", &points(|second| second.accepted), scale);
    let steps = (0..=(scale.end_s * 10.0) as u64).map(|tenth| tenth as f64 / 10.0);
    line(svg, "limit", &steps.map(|at_s| (at_s, launch.limit_at(at_s))).collect::<Vec<_>>(), scale);
    for (at_s, cause) in &panel.decisions {
        let x = scale.x(*at_s);
        let _ = writeln!(
            svg,
            "<g><title>{:.1} s: {}</title><line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"10\"/>\
             <circle class=\"dot\" cx=\"{x:.1}\" cy=\"0\" r=\"3\"/></g>",
            at_s,
            escaped(cause)
        );
    }
}

fn axes(svg: &mut String, scale: &Scale) {
    for quarter in 0..=4 {
        let per_s = scale.top * f64::from(quarter) / 4.0;
        let y = scale.y(per_s);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"soft\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{per_s:.0}/s</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0].into_iter().find(|step| scale.end_s / step <= 14.0);
    let step = step.unwrap_or(120.0);
    for tick in 0..=(scale.end_s / step) as u64 {
        let at_s = tick as f64 * step;
        let _ = writeln!(
            svg,
            "<text class=\"soft\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{at_s:.0} s</text>",
            scale.x(at_s),
            HEIGHT + 16.0
        );
    }
}

fn line(svg: &mut String, class: &str, points: &[(f64, f64)], scale: &Scale) {
    let mut path = String::new();
    for (at_s, per_s) in points {
        let _ = write!(path, "{:.1},{:.1} ", scale.x(*at_s), scale.y(*per_s));
    }
    let _ = writeln!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", path.trim_end());
}

fn legend(svg: &mut String, y: f64) {
    let entries = [
        ("accepted a second", "key-accepted"),
        ("sent", "key-sent"),
        ("throttled", "throttled"),
        ("the real limit", "key-limit"),
        ("held", "hold"),
        ("a decision about the pace", "dot"),
    ];
    let mut x = LEFT;
    for (text, class) in entries {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" class=\"{class}\"/><text x=\"{}\" y=\"{y}\">{text}</text>",
            y - 10.0,
            x + 18.0
        );
        x += 40.0 + text.len() as f64 * 6.6;
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_well_formed_and_escapes_what_others_wrote() {
        let second = |at_s, arrivals, throttled| LedgerSecond {
            at_s,
            arrivals,
            throttled,
            accepted: arrivals - throttled,
        };
        let panel = Panel {
            title: "<script>".into(),
            began_s: 100.0,
            timeline: vec![second(100, 50, 0), second(101, 120, 20)],
            holds_s: vec![(1.0, 2.0)],
            decisions: vec![(1.2, "cut 120 → 60/s & more".into())],
        };
        let svg = draw(&Launch::default(), &[panel.clone(), panel]);
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
        assert!(svg.contains("&lt;script&gt;") && svg.contains("&amp; more") && !svg.contains("<script>"));
        assert_eq!(svg.matches("class=\"hold\"").count(), 3, "two holds and the legend");
    }
}
