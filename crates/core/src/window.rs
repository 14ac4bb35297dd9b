//! When a class may send: days and hours by the clock of a zone, and one-off dates.

use crate::Fault;
use crate::quota::{moment, zone};
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::fmt;

/// Send windows, right across changes of the clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Windows {
    zone: TimeZone,
    rules: Vec<Rule>,
    texts: Vec<String>,
}

/// Whether it may send, and when that changes next, in ms since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// It may, until then.
    Open(u64),
    /// It may not, until then.
    Closed(u64),
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    opens: bool,
    days: Days,
    /// Minutes of the day; `to` at or before `from` is on the next day.
    from: i64,
    to: i64,
}

#[derive(Debug, Clone, PartialEq)]
enum Days {
    /// Monday first.
    Weekly([bool; 7]),
    Once(Date),
}

/// The spans around and after a moment in which it is named open, and closed.
struct Spans {
    open: Vec<(u64, u64)>,
    closed: Vec<(u64, u64)>,
    /// Only closed times are named.
    is_open_else: bool,
}

/// Nothing is looked for further ahead; what never changes is looked at again then.
const HORIZON_DAYS: i64 = 370;
const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Windows {
    /// From what an operator writes: `mon-fri 09:00-17:30`, `daily 22:00-06:00`, `2026-12-24 08:00-12:00`,
    /// `not 2026-12-25`. What is closed wins; where only closed times are named, the rest is open.
    pub fn new(zone_name: &str, texts: &[String]) -> Result<Self, Fault> {
        let zone = zone("window_zone", zone_name)?;
        let rules = texts.iter().map(|text| Rule::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self { zone, rules, texts: texts.to_vec() })
    }

    /// Whether it may send at `now_ms`, and until when that stays so.
    pub fn at(&self, now_ms: u64) -> Window {
        // A week and a day tell almost always; a far one-off date is looked for only where they do not.
        [9, HORIZON_DAYS].into_iter().find_map(|days| self.within(now_ms, days)).unwrap_or_else(|| {
            let end_ms = now_ms.saturating_add(HORIZON_DAYS as u64 * 86_400_000);
            let is_open = Spans::of(self, now_ms, 1).are_open(now_ms);
            if is_open { Window::Open(end_ms) } else { Window::Closed(end_ms) }
        })
    }

    /// The next change within so many days; `None`: there is none.
    fn within(&self, now_ms: u64, days: i64) -> Option<Window> {
        let spans = Spans::of(self, now_ms, days);
        let is_open = spans.are_open(now_ms);
        let edges = spans.open.iter().chain(&spans.closed).flat_map(|(from, to)| [*from, *to]);
        let change = edges.filter(|&edge| edge > now_ms && spans.are_open(edge) != is_open).min()?;
        Some(if is_open { Window::Open(change) } else { Window::Closed(change) })
    }

    /// The spans around and after a moment in which such a rule holds.
    fn spans(&self, now_ms: u64, days: i64, opens: bool) -> impl Iterator<Item = (u64, u64)> {
        let today = self.zone.to_datetime(moment(now_ms)).date();
        let rules = self.rules.iter().filter(move |rule| rule.opens == opens);
        rules.flat_map(move |rule| {
            rule.dates(today, days).map(move |date| {
                let next = if rule.to <= rule.from { date.saturating_add(1.day()) } else { date };
                (self.instant_ms(date, rule.from), self.instant_ms(next, rule.to))
            })
        })
    }

    /// The moment the wall clock shows this; where it is skipped, the moment the clocks jump to.
    fn instant_ms(&self, date: Date, minute: i64) -> u64 {
        let wall = date.to_datetime(jiff::civil::Time::midnight()).saturating_add(minute.minutes());
        let moment = self.zone.to_timestamp(wall);
        moment.map_or(0, |moment| moment.as_millisecond().max(0) as u64)
    }
}

impl Spans {
    fn of(windows: &Windows, now_ms: u64, days: i64) -> Self {
        let [open, closed] = [true, false].map(|opens| windows.spans(now_ms, days, opens).collect());
        Self { open, closed, is_open_else: windows.rules.iter().all(|rule| !rule.opens) }
    }

    fn are_open(&self, at_ms: u64) -> bool {
        let hold = |spans: &[(u64, u64)]| spans.iter().any(|(from, to)| *from <= at_ms && at_ms < *to);
        (self.is_open_else || hold(&self.open)) && !hold(&self.closed)
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = || {
            let right = "\"mon-fri 09:00-17:30\", \"daily 22:00-06:00\", \"2026-12-24 08:00-12:00\" or \"not 2026-12-25\"";
            Fault::new("windows", format!("{text:?} is not a send window; write it like {right}"))
        };
        let words = text.trim().to_lowercase();
        let (opens, words) =
            words.strip_prefix("not ").map_or((true, words.as_str()), |rest| (false, rest.trim()));
        let (days, hours) = words.split_once(' ').unwrap_or((words, "00:00-24:00"));
        let (from, to) = hours.trim().split_once('-').ok_or_else(wrong)?;
        let (from, to) = (minute(from).ok_or_else(wrong)?, minute(to).ok_or_else(wrong)?);
        if from == to || from == 1_440 {
            return Err(wrong());
        }
        let days = days.parse().map(Days::Once).ok().or_else(|| weekly(days)).ok_or_else(wrong)?;
        Ok(Self { opens, days, from, to })
    }

    /// The days it begins on, from the day before `today`.
    fn dates(&self, today: Date, days: i64) -> impl Iterator<Item = Date> {
        let once = match self.days {
            Days::Once(date) => Some(date),
            Days::Weekly(_) => None,
        };
        let weekly = match self.days {
            Days::Weekly(on) => on,
            Days::Once(_) => [false; 7],
        };
        let week = (-1..=if once.is_some() { -2 } else { days })
            .map(move |offset| today.saturating_add(offset.days()))
            .filter(move |date| weekly[date.weekday().to_monday_zero_offset() as usize]);
        let last = today.saturating_add(days.days());
        once.into_iter().filter(move |date| *date <= last).chain(week)
    }
}

/// Minutes since midnight of `HH:MM`, up to `24:00`.
fn minute(text: &str) -> Option<i64> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute): (i64, i64) = (hour.parse().ok()?, minute.parse().ok()?);
    let total = hour * 60 + minute;
    ((0..60).contains(&minute) && (0..=1_440).contains(&total)).then_some(total)
}

/// `mon-fri`, `sat,sun`, `daily`.
fn weekly(text: &str) -> Option<Days> {
    if text == "daily" {
        return Some(Days::Weekly([true; 7]));
    }
    let place = |name: &str| DAY_NAMES.iter().position(|day| *day == name);
    let mut on = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (place(first.trim())?, place(last.trim())?);
        let span = (last + 7 - first) % 7;
        (0..=span).for_each(|offset| on[(first + offset) % 7] = true);
    }
    Some(Days::Weekly(on))
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.texts.join("; "), self.zone.iana_name().unwrap_or("UTC"))
    }
}

#[cfg(test)]
mod tests;
