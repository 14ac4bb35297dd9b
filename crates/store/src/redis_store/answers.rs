//! The one place that reads what scripts answer: an array that begins with a word.

use crate::error::StoreError;
use crate::movement::*;
use crate::reconcile::{Reconcile, Reconciled};
use crate::record::Record;
use paceline_core::State;
use paceline_core::decide::{HoldCause, Probe};
use paceline_core::pace::Heard;
use redis::Value;
use std::collections::HashMap;

/// A script's answer: its word and what follows.
#[derive(Debug)]
pub(super) struct Answer {
    word: String,
    rest: Vec<Value>,
}

impl Answer {
    pub(super) fn read(value: Value) -> Result<Self> {
        let Value::Array(mut values) = value else { return Err(odd("an array", &value)) };
        if values.is_empty() {
            return Err(odd("a word", &Value::Nil));
        }
        let rest = values.split_off(1);
        Ok(Self { word: text(&values[0])?, rest })
    }

    /// Redis's clock, which follows `ok`.
    pub(super) fn now_ms(&self) -> Option<u64> {
        if self.word == "ok" { self.rest.first().and_then(|value| number(value).ok()) } else { None }
    }

    /// What follows `ok` and the time; any other word is an error that a caller can act on.
    pub(super) fn ok(self) -> Result<(u64, Vec<Value>)> {
        match self.word.as_str() {
            "ok" => {
                let mut rest = self.rest.into_iter();
                let now_ms = number(&rest.next().unwrap_or(Value::Nil))?;
                Ok((now_ms, rest.collect()))
            }
            "unknown_class" => Err(StoreError::UnknownClass),
            "moving" => Err(StoreError::Moving),
            "undeclared" => Err(StoreError::Undeclared),
            "full" => Err(StoreError::Full { waiting: number(self.rest.first().unwrap_or(&Value::Nil))? }),
            word => Err(StoreError::Bug {
                place: "answers.rs".into(),
                problem: format!("unexpected word {word}"),
            }),
        }
    }

    /// What follows, as pairs of a word and an extra.
    fn word_pairs<T>(self, read: impl Fn(&str, &str) -> Option<T>) -> Result<Vec<T>> {
        let (_, rest) = self.ok()?;
        rest.chunks(2)
            .map(|pair| {
                let (word, extra) = (text(&pair[0])?, text(pair.get(1).unwrap_or(&Value::Nil))?);
                read(&word, &extra).ok_or_else(|| odd("a known word", &pair[0]))
            })
            .collect()
    }

    pub(super) fn pushed(self) -> Result<Vec<Pushed>> {
        self.word_pairs(|word, extra| match word {
            "created" => Some(Pushed::Created),
            "duplicate" => State::parse(extra).map(Pushed::Duplicate),
            "conflict" => State::parse(extra).map(Pushed::Conflict),
            "invalid" => Some(Pushed::Invalid(extra.to_owned())),
            _ => None,
        })
    }

    pub(super) fn claim(self) -> Result<Claim> {
        match self.word.as_str() {
            "empty" => Ok(Claim::Empty { next_ms: wait(&self.rest, 0)? }),
            "wait" => Ok(Claim::Wait { ms: wait(&self.rest, 0)?, term: text(nth(&self.rest, 1))? }),
            _ => {
                let (now_ms, rest) = self.ok()?;
                let cause = HoldCause::parse(&text(nth(&rest, 1))?);
                let interval_ms = number(nth(&rest, 2))?;
                Ok(Claim::Jobs(Batch {
                    now_ms,
                    next_ms: wait(&rest, 0)?,
                    probe: cause.map(|cause| Probe { cause, interval_ms }),
                    deadline_ms: number(nth(&rest, 3))?,
                    jobs: jobs(rest.get(4..).unwrap_or_default())?,
                }))
            }
        }
    }

    pub(super) fn reaped(self) -> Result<Batch> {
        let (now_ms, rest) = self.ok()?;
        let deadline_ms = number(nth(&rest, 0))?;
        Ok(Batch {
            now_ms,
            deadline_ms,
            next_ms: None,
            probe: None,
            jobs: jobs(rest.get(1..).unwrap_or_default())?,
        })
    }

    pub(super) fn reconciled(self, jobs: &[Reconcile]) -> Result<Vec<Reconciled>> {
        let (_, rest) = self.ok()?;
        let of = |(job, values): (&Reconcile, &[Value])| match (&job.mend, text(nth(values, 0))?.as_str()) {
            (Some(_), "mended") => Ok(Reconciled::Mended),
            (Some(_), _) => Ok(Reconciled::Changed),
            (None, _) => {
                let bits = number(nth(values, 0))?;
                let is_in = |state: &State| bits & (1 << state.number()) != 0;
                let states = State::ALL.into_iter().filter(is_in).collect();
                let (seen, record) = (bytes(nth(values, 1))?, bytes(nth(values, 2))?);
                Ok(Reconciled::seen(&job.key, states, seen.to_vec(), record))
            }
        };
        jobs.iter().zip(rest.chunks(3)).map(of).collect()
    }

    pub(super) fn started(self) -> Result<Vec<bool>> {
        let (_, rest) = self.ok()?;
        rest.iter().map(|value| text(value).map(|word| word == "ok")).collect()
    }

    pub(super) fn confirmed(self) -> Result<Vec<Confirmed>> {
        self.word_pairs(|word, extra| match word {
            "confirmed" => State::parse(extra).map(Confirmed::Confirmed),
            "moved" => State::parse(extra).map(Confirmed::Moved),
            "missing" => Some(Confirmed::Missing),
            _ => None,
        })
    }

    pub(super) fn doubted(self) -> Result<Vec<Doubted>> {
        let (_, rest) = self.ok()?;
        let word = |value: &Value| match text(value)?.as_str() {
            "held" => Ok(Doubted::Held),
            "doubted" => Ok(Doubted::Doubted),
            "elsewhere" => Ok(Doubted::Elsewhere),
            _ => Err(odd("a known word", value)),
        };
        rest.iter().map(word).collect()
    }

    pub(super) fn settled(self) -> Result<Vec<Settled>> {
        self.word_pairs(|word, extra| match word {
            "moved" => State::parse(extra).map(Settled::Moved),
            "late" => State::parse(extra).map(Settled::Late),
            "twice" => Some(Settled::Twice),
            "already" => Some(Settled::Already),
            "stale" => Some(Settled::Stale),
            "gone" => Some(Settled::Gone),
            "parked" => Some(Settled::Parked),
            "held" => HoldCause::parse(extra).map(Settled::Held),
            _ => None,
        })
    }

    pub(super) fn replayed(self) -> Result<Vec<Replayed>> {
        self.word_pairs(|word, extra| match word {
            "replayed" => Some(Replayed::Replayed),
            "moved" => Some(Replayed::Moved(State::parse(extra))),
            "missing" => Some(Replayed::Missing),
            _ => None,
        })
    }

    pub(super) fn budget(self) -> Result<BudgetState> {
        let (now_ms, rest) = self.ok()?;
        let tokens = text(nth(&rest, 0))?.parse().map_err(|_| odd("a number", nth(&rest, 0)))?;
        let Value::Array(used) = nth(&rest, 1) else { return Err(odd("numbers", nth(&rest, 1))) };
        let fields = Fields::read(rest.get(2..).unwrap_or_default())?;
        Ok(BudgetState {
            now_ms,
            version: fields.count("version"),
            ceiling_per_s: fields.number("rate_per_s"),
            ceiling_burst: fields.number("burst"),
            floor_per_s: fields.number("floor_per_s"),
            limits_by: fields.text("limits_by"),
            max_in_flight: fields.count("max_in_flight"),
            pace_per_s: fields.number("pace_per_s"),
            pace_burst: fields.number("pace_burst"),
            tokens,
            law: fields.text("law"),
            heard: fields.heard(),
            late_throttled: fields.count("late_throttled"),
            quotas_used: used.iter().map(number).collect::<Result<_>>()?,
            hold: fields.hold(now_ms),
        })
    }

    pub(super) fn adjusted(self) -> Result<bool> {
        if self.word == "stale" { Ok(false) } else { self.ok().map(|_| true) }
    }

    pub(super) fn explained(self) -> Result<Option<Explained>> {
        if self.word == "missing" {
            return Ok(None);
        }
        let (now_ms, rest) = self.ok()?;
        Ok(Some(Explained {
            now_ms,
            wait_ms: wait(&rest, 0)?,
            term: text(nth(&rest, 1))?,
            next_due_ms: wait(&rest, 2)?,
            state: State::parse(&text(nth(&rest, 3))?),
            score_ms: number(nth(&rest, 4))?,
            rank: wait(&rest, 5)?,
        }))
    }

    pub(super) fn cancelled(self) -> Result<Vec<Cancelled>> {
        self.word_pairs(|word, extra| match word {
            "cancelled" => State::parse(extra).map(Cancelled::Cancelled),
            "marked" => Some(Cancelled::Marked),
            "over" => State::parse(extra).map(Cancelled::Over),
            "missing" => Some(Cancelled::Missing),
            _ => None,
        })
    }

    pub(super) fn erased(self) -> Result<Erased> {
        match self.word.as_str() {
            "erased" => {
                let state = State::parse(&text(nth(&self.rest, 0))?);
                state.map(Erased::Erased).ok_or_else(|| odd("a state", nth(&self.rest, 0)))
            }
            "in_flight" => Ok(Erased::InFlight),
            "missing" => Ok(Erased::Missing),
            _ => self.ok().map(|_| Erased::Missing),
        }
    }

    pub(super) fn swept(self) -> Result<usize> {
        let (_, rest) = self.ok()?;
        Ok(number(nth(&rest, 0))? as usize)
    }

    pub(super) fn stored(self, key: &str) -> Result<Option<Stored>> {
        if self.word == "missing" {
            return Ok(None);
        }
        let (now_ms, rest) = self.ok()?;
        Ok(Some(Stored {
            now_ms,
            state: State::parse(&text(nth(&rest, 0))?),
            score_ms: score(nth(&rest, 1))?,
            record: Record::parse(key, bytes(nth(&rest, 2))?, bytes(nth(&rest, 3))?),
        }))
    }

    pub(super) fn depths(self) -> Result<Depths> {
        let (now_ms, rest) = self.ok()?;
        let mut counts = [0; 9];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = number(nth(&rest, index))?;
        }
        let holds = rest.get(12..).unwrap_or_default().chunks(3).map(hold).collect::<Result<_>>()?;
        Ok(Depths {
            now_ms,
            counts,
            scheduled: number(nth(&rest, 9))?,
            oldest_due_ms: wait(&rest, 10)?,
            oldest_pending_ms: wait(&rest, 11)?,
            holds,
        })
    }

    pub(super) fn listed(self) -> Result<Vec<Listed>> {
        let (_, rest) = self.ok()?;
        rest.chunks(3)
            .map(|entry| {
                let key = text(&entry[0])?;
                let record = Record::parse(&key, bytes(nth(entry, 2))?, b"");
                Ok(Listed { score_ms: score(nth(entry, 1))?, record, key })
            })
            .collect()
    }
}

fn jobs(values: &[Value]) -> Result<Vec<Claimed>> {
    values
        .chunks(5)
        .map(|job| {
            let key = text(&job[0])?;
            let record = Record::parse(&key, bytes(nth(job, 2))?, bytes(nth(job, 3))?);
            Ok(Claimed { offset_ms: number(nth(job, 1))?, record, key })
        })
        .collect()
}

fn hold(fields: &[Value]) -> Result<Option<Hold>> {
    let Some(cause) = HoldCause::parse(&text(&fields[0])?) else { return Ok(None) };
    let until = text(nth(fields, 1))?;
    Ok(Some(Hold { cause, until_ms: until.parse().ok(), by: text(nth(fields, 2))? }))
}

fn nth(values: &[Value], index: usize) -> &Value {
    values.get(index).unwrap_or(&Value::Nil)
}

/// A time from now where -1 says there is none.
fn wait(values: &[Value], index: usize) -> Result<Option<u64>> {
    match nth(values, index) {
        Value::Int(ms) => Ok(u64::try_from(*ms).ok()),
        other => Err(odd("a number", other)),
    }
}

fn number(value: &Value) -> Result<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| odd("a positive number", value)),
        Value::BulkString(_) => text(value)?.parse().map_err(|_| odd("a number", value)),
        _ => Err(odd("a number", value)),
    }
}

fn score(value: &Value) -> Result<u64> {
    match value {
        Value::Double(score) => Ok(*score as u64),
        _ => Ok(text(value)?.parse::<f64>().map_err(|_| odd("a score", value))? as u64),
    }
}

/// A text; nil is empty.
pub(super) fn text(value: &Value) -> Result<String> {
    match value {
        Value::Nil => Ok(String::new()),
        Value::SimpleString(text) => Ok(text.clone()),
        Value::Int(number) => Ok(number.to_string()),
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => Err(odd("a text", value)),
    }
}

/// The texts of a flat answer, field and value alike; empty where it is anything else.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().filter_map(|value| text(value).ok()).collect(),
        Value::Map(pairs) => pairs
            .iter()
            .flat_map(|(field, value)| [field, value])
            .filter_map(|value| text(value).ok())
            .collect(),
        _ => Vec::new(),
    }
}

fn bytes(value: &Value) -> Result<&[u8]> {
    match value {
        Value::Nil => Ok(b""),
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(odd("bytes", value)),
    }
}

/// What `SCAN` answers: a cursor and names.
pub(super) fn scanned(value: &Value) -> Result<(u64, Vec<String>)> {
    let Value::Array(parts) = value else { return Err(odd("a page", value)) };
    let Value::Array(names) = nth(parts, 1) else { return Err(odd("names", value)) };
    let cursor = text(nth(parts, 0))?.parse().map_err(|_| odd("a cursor", value))?;
    Ok((cursor, names.iter().map(text).collect::<Result<_>>()?))
}

/// The entries of a stream of decisions, as they come.
pub(super) fn decisions(value: &Value) -> Result<Vec<PaceDecision>> {
    let Value::Array(entries) = value else { return Err(odd("a stream", value)) };
    entries
        .iter()
        .map(|entry| {
            let Value::Array(entry) = entry else { return Err(odd("an entry", entry)) };
            let Value::Array(fields) = nth(entry, 1) else { return Err(odd("fields", nth(entry, 1))) };
            let (id, fields) = (text(nth(entry, 0))?, Fields::read(fields)?);
            Ok(PaceDecision {
                at_ms: id.split('-').next().and_then(|ms| ms.parse().ok()).unwrap_or(0),
                from_per_s: fields.number("from_per_s"),
                to_per_s: fields.number("to_per_s"),
                burst: fields.number("burst"),
                cause: fields.text("cause"),
            })
        })
        .collect()
}

/// The fields of a hash, by name.
struct Fields(HashMap<String, String>);

impl Fields {
    fn read(values: &[Value]) -> Result<Self> {
        let pair = |pair: &[Value]| Ok((text(&pair[0])?, text(nth(pair, 1))?));
        values.chunks(2).map(pair).collect::<Result<_>>().map(Self)
    }

    fn text(&self, field: &str) -> String {
        self.0.get(field).cloned().unwrap_or_default()
    }

    /// A field that is not there is zero: every counter starts there.
    fn number(&self, field: &str) -> f64 {
        self.0.get(field).and_then(|text| text.parse().ok()).unwrap_or(0.0)
    }

    fn count(&self, field: &str) -> u64 {
        self.number(field).max(0.0) as u64
    }

    fn hold(&self, now_ms: u64) -> Option<Hold> {
        let cause = HoldCause::parse(&self.text("hold_cause"))?;
        let until_ms = self.text("hold_until").parse().ok();
        let stands = until_ms.is_none_or(|ms: u64| ms > now_ms) || self.number("hold_probe_ms") > 0.0;
        stands.then(|| Hold { cause, until_ms, by: self.text("hold_by") })
    }

    fn heard(&self) -> Heard {
        Heard {
            taken: self.count("taken"),
            accepted: self.count("accepted"),
            throttled: self.count("throttled"),
            episodes: self.count("episodes"),
            episode_at_ms: self.count("episode_at_ms"),
            hold_until_ms: self.count("hold_until"),
            bound_at_ms: self.count("bound_at_ms"),
            answer_ms: self.count("answer_ms"),
        }
    }
}

/// A hash of numbers.
pub(super) fn pairs(value: &Value) -> Result<Vec<(String, u64)>> {
    let entries: Vec<(&Value, &Value)> = match value {
        Value::Map(entries) => entries.iter().map(|(field, value)| (field, value)).collect(),
        Value::Array(values) => values.chunks(2).map(|pair| (&pair[0], nth(pair, 1))).collect(),
        _ => return Err(odd("a hash", value)),
    };
    entries.into_iter().map(|(field, value)| Ok((text(field)?, number(value)?))).collect()
}

fn odd(wanted: &str, found: &Value) -> StoreError {
    let found: String = format!("{found:?}").chars().take(200).collect();
    StoreError::Bug { place: "answers.rs".into(), problem: format!("expected {wanted}, got {found}") }
}
