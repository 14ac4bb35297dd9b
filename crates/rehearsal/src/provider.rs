//! The other company: one verdict per request. Time is an argument: a test needs neither clock nor HTTP.

use crate::bucket::{Bucket, Limit};
use crate::ledger::{Book, Ledger, LedgerEntry, LedgerSummary, Line};
use crate::reply::Reply;
use crate::scenario::{ErrorAnswer, Scenario};
use paceline_core::Fault;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// What the provider reads from a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrival {
    pub(crate) send_id: Option<String>,
    pub(crate) credential: String,
    pub(crate) payload_key: Option<String>,
}

/// Now, by both clocks: limits need one that never jumps, the record one that others share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) since_start: Duration,
    pub(crate) unix_us: u64,
}

/// What becomes of a request, and after which delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) ending: Ending,
}

/// How a request ends for the one who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Answer(Reply),
    /// The connection is closed without a byte.
    Cut,
    /// The connection stays open for so long, then it is cut.
    Hang(Duration),
}

/// What the provider makes of a request, before it is in the book.
enum Judgement {
    Throttled,
    UnknownCredential,
    Error(ErrorAnswer),
    Accepted,
    Cut,
    Hung,
}

/// A longer idempotency key is refused, as real providers do.
const MAX_SEND_ID_BYTES: usize = 255;

#[derive(Debug)]
pub(crate) struct Provider {
    scenario: Scenario,
    limit: Limit,
    buckets: HashMap<String, Bucket>,
    book: Book,
    draws: StdRng,
    /// Where the schedule's zero lies.
    epoch: Duration,
}

impl Provider {
    /// The scenario has passed its check.
    pub(crate) fn new(scenario: Scenario) -> Self {
        let epoch = Duration::ZERO;
        Self {
            limit: limit(&scenario, epoch),
            buckets: HashMap::new(),
            book: Book::default(),
            draws: StdRng::seed_from_u64(scenario.seed),
            epoch,
            scenario,
        }
    }

    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub(crate) fn summary(&self) -> LedgerSummary {
        self.book.summary()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.book.snapshot()
    }

    pub(crate) fn page(&self, cursor: usize, limit: usize) -> &[LedgerEntry] {
        self.book.page(cursor, limit)
    }

    /// Another scenario from now on. Nobody gets tokens by it: a bucket keeps what it holds, up to its burst.
    pub(crate) fn set_scenario(&mut self, scenario: Scenario, now: Moment) -> Result<(), Fault> {
        scenario.check()?;
        let limit = limit(&scenario, self.epoch);
        for bucket in self.buckets.values_mut() {
            bucket.settle(&self.limit, now.since_start);
            bucket.settle(&limit, now.since_start);
        }
        if scenario.seed != self.scenario.seed {
            self.draws = StdRng::seed_from_u64(scenario.seed);
        }
        self.limit = limit;
        self.scenario = scenario;
        Ok(())
    }

    /// The scenario with some fields changed.
    pub(crate) fn patch(&mut self, patch: Value, now: Moment) -> Result<(), Fault> {
        let scenario = self.scenario.patched(patch)?;
        self.set_scenario(scenario, now)
    }

    /// As if it had just started, with the scenario in force: empty ledger, full buckets, the first draw, and
    /// the schedule from its beginning.
    pub(crate) fn reset(&mut self, now: Moment) {
        self.book.clear();
        self.buckets.clear();
        self.draws = StdRng::seed_from_u64(self.scenario.seed);
        self.epoch = now.since_start;
        self.limit = limit(&self.scenario, self.epoch);
    }

    /// One request: its verdict, already in the ledger.
    pub(crate) fn receive(&mut self, arrival: Arrival, now: Moment) -> Verdict {
        // Always two draws, so that a change of scenario does not shift the fate of later requests.
        let (fate, jitter): (f64, f64) = (self.draws.random(), self.draws.random());
        let jitter_us = jitter * self.scenario.latency_jitter_ms as f64 * 1_000.0;
        let delay = Duration::from_millis(self.scenario.latency_ms) + Duration::from_micros(jitter_us as u64);
        let ending = match self.enter(&arrival, now) {
            Ok(line) => {
                let judgement = self.judge(line, &arrival.credential, now, fate);
                self.settle(line, judgement, now)
            }
            Err(reply) => Ending::Answer(reply),
        };
        Verdict { delay, ending }
    }

    /// Writes the arrival down, or says why it gets no line of its own.
    fn enter(&mut self, arrival: &Arrival, now: Moment) -> Result<Line, Reply> {
        let Arrival { send_id, credential, payload_key } = arrival;
        let send_id = send_id.as_deref();
        let reply = if send_id.is_some_and(|send_id| send_id.len() > MAX_SEND_ID_BYTES) {
            Reply::refused(400, "idempotency_key_too_long")
        } else if let Some(line) = self.book.arrive(send_id, credential, payload_key.as_deref(), now.unix_us)
        {
            return Ok(line);
        } else {
            Reply::refused(507, "ledger_full")
        };
        self.book.refuse_unlisted(now.unix_us);
        Err(reply)
    }

    fn judge(&mut self, line: Line, credential: &str, now: Moment, fate: f64) -> Judgement {
        if let Some(error) = &self.scenario.always {
            return Judgement::Error(error.clone());
        }
        if !admits(&self.scenario, credential) {
            return Judgement::UnknownCredential;
        }
        let repeat = self.scenario.deduplicates && self.book.delivered(line);
        let exempt = repeat && !self.scenario.repeats_consume;
        if !exempt && !self.take_token(credential, now.since_start) {
            return Judgement::Throttled;
        }
        drawn(&self.scenario, fate)
    }

    fn settle(&mut self, line: Line, judgement: Judgement, now: Moment) -> Ending {
        match judgement {
            Judgement::Throttled => {
                self.book.throttle(line, now.unix_us);
                Ending::Answer(Reply::throttled(&self.scenario, now.unix_us))
            }
            Judgement::UnknownCredential => {
                self.book.refuse(line, 401);
                Ending::Answer(Reply::refused(401, "unknown_credential"))
            }
            Judgement::Error(error) => {
                self.settle_error(line, &error, now);
                Ending::Answer(Reply::error(&error))
            }
            Judgement::Accepted => Ending::Answer(Reply::accepted(&self.deliver(line, now))),
            Judgement::Cut => {
                self.swallow(line, now);
                Ending::Cut
            }
            Judgement::Hung => {
                self.swallow(line, now);
                Ending::Hang(Duration::from_millis(self.scenario.hang_ms))
            }
        }
    }

    fn settle_error(&mut self, line: Line, error: &ErrorAnswer, now: Moment) {
        if error.delivered {
            self.deliver(line, now);
        }
        match error.status {
            429 => self.book.throttle(line, now.unix_us),
            status => self.book.refuse(line, status),
        }
    }

    /// Accepted, and the sender never hears of it.
    fn swallow(&mut self, line: Line, now: Moment) {
        self.deliver(line, now);
        self.book.leave_unanswered(line);
    }

    fn deliver(&mut self, line: Line, now: Moment) -> String {
        self.book.deliver(line, self.scenario.deduplicates, now.unix_us)
    }

    fn take_token(&mut self, credential: &str, now: Duration) -> bool {
        if !self.buckets.contains_key(credential) {
            self.buckets.insert(credential.to_owned(), Bucket::full(&self.limit, now));
        }
        let bucket = self.buckets.get_mut(credential).expect("it was inserted if it was missing");
        let granted = bucket.try_take(&self.limit, now);
        if !granted && self.scenario.refusals_consume {
            bucket.charge_refusal(&self.limit);
        }
        granted
    }
}

/// Steps count from `epoch`.
fn limit(scenario: &Scenario, epoch: Duration) -> Limit {
    let steps = scenario.limit_schedule.iter();
    let steps = steps.map(|step| (epoch + Duration::from_secs_f64(step.at_s), step.rate_per_s));
    Limit::new(scenario.burst, scenario.rate_per_s, steps)
}

/// An operator writes the key; on the wire it follows its scheme.
fn admits(scenario: &Scenario, credential: &str) -> bool {
    let Some(keys) = &scenario.accept_keys else { return true };
    let bare = credential.split_once(' ').map(|(_, bare)| bare);
    keys.iter().any(|key| key == credential || Some(key.as_str()) == bare)
}

/// One draw, one fate: the shares lie side by side in `[0, 1)`, and the rest is acceptance.
fn drawn(scenario: &Scenario, fate: f64) -> Judgement {
    let mut end = scenario.unanswered_share;
    if fate < end {
        return Judgement::Cut;
    }
    end += scenario.hang_share;
    if fate < end {
        return Judgement::Hung;
    }
    let struck = scenario.errors.iter().find(|error| {
        end += error.share;
        fate < end
    });
    struck.map_or(Judgement::Accepted, |error| Judgement::Error(error.clone()))
}

#[cfg(test)]
mod tests;
