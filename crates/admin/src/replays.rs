//! `POST /v1/replays`: dead letters back to pending, same key and send id, at a fifth of the pace.
//!
//! `{class, keys: […]}`, or `{class, state?, reason?, code?}` as in the dead letters, with `dry_run`,
//! `accept_duplicates` and `cursor`. A call looks at no more than 1,000 records; `next_cursor` goes on. Each
//! move is fenced by the state the job was seen in, so two operators, or a repeat, move nothing twice.
//!
//! Held back, with the reason: a job that may have been accepted and whose provider no longer recognises its
//! send id (`needs_confirmation`: send again with `accept_duplicates`), one that has expired, one that is
//! in another state, one that is gone.

mod verdict;

use crate::access::Caller;
use crate::classes::{App, Known};
use crate::cursor::{MAX_EXAMINED, Walk};
use crate::dead_letters::{Filter, states};
use crate::fields::{Fields, InBody};
use crate::jobs::check_keys;
use crate::problem::Problem;
use axum::extract::State;
use axum::{Extension, Json};
use paceline_core::State as JobState;
use paceline_store::{Record, ReplayPace, Replayed, Store};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use verdict::{Verdict, last_outcome};

/// What one call of the replay script takes.
const CHUNK_JOBS: usize = 200;
/// Replays take this share of the credential's rate, so that they never stand before new work.
const SHARE_OF_RATE: f64 = 0.2;

/// What is asked for.
struct Ask {
    class: String,
    keys: Option<Vec<String>>,
    states: Vec<JobState>,
    filter: Filter,
    dry_run: bool,
    accept_duplicates: bool,
    cursor: Option<String>,
}

impl Ask {
    fn take(mut fields: Fields) -> Result<Self, Problem> {
        let keys = fields.texts("keys", MAX_EXAMINED)?;
        let (class, dry_run) = (fields.required("class")?, fields.flag("dry_run")?);
        let accept_duplicates = fields.flag("accept_duplicates")?;
        let (states, filter, cursor) = match &keys {
            // Who names a job means it, whatever it died of.
            Some(keys) => {
                check_keys(keys)?;
                let dead = vec![JobState::Failed, JobState::Deferred, JobState::Unconfirmed];
                (dead, Filter::default(), None)
            }
            None => (states(&mut fields)?, Filter::take(&mut fields)?, fields.text("cursor")?),
        };
        fields.finish()?;
        Ok(Self { class, keys, states, filter, dry_run, accept_duplicates, cursor })
    }
}

/// One job that was not replayed.
#[derive(Debug, Serialize)]
pub(crate) struct HeldBack {
    pub(crate) key: String,
    pub(crate) why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<JobState>,
}

/// What a call did, or in a dry run would have done.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) class: String,
    pub(crate) dry_run: bool,
    pub(crate) examined: usize,
    /// Dead letters that are meant.
    pub(crate) matched: usize,
    /// Of those, the ones that may be replayed.
    pub(crate) replayable: usize,
    /// Moved to pending; 0 in a dry run.
    pub(crate) replayed: usize,
    pub(crate) needs_confirmation: usize,
    pub(crate) expired: usize,
    /// In another state than a dead letter's, or moved by somebody else meanwhile.
    pub(crate) moved: usize,
    pub(crate) missing: usize,
    /// How each that matched ended last.
    pub(crate) verdicts: BTreeMap<&'static str, usize>,
    pub(crate) held_back: Vec<HeldBack>,
    /// The time between two replayed jobs.
    pub(crate) interval_ms: f64,
    pub(crate) next_cursor: Option<String>,
}

/// A call under way.
struct Run<'a> {
    app: &'a App,
    known: &'a Known,
    accept_duplicates: bool,
    /// Judged replayable, not moved yet.
    chosen: Vec<(String, JobState)>,
    report: Report,
}

/// The route.
pub(crate) async fn replay(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    InBody(fields): InBody,
) -> Result<Json<Report>, Problem> {
    Ok(Json(run(&app, &caller, fields).await?))
}

/// One call's worth of a replay, or of its dry run.
pub(crate) async fn run(app: &App, caller: &Caller, fields: Fields) -> Result<Report, Problem> {
    let ask = Ask::take(fields)?;
    let known = app.class(&ask.class)?;
    let rate = known.at.budgets.first().map_or(1.0, |credential| credential.limits.rate.per_s());
    let report = Report {
        class: ask.class.clone(),
        dry_run: ask.dry_run,
        interval_ms: 1_000.0 / (SHARE_OF_RATE * rate),
        ..Report::default()
    };
    let mut run = Run { app, known, accept_duplicates: ask.accept_duplicates, chosen: Vec::new(), report };
    let done = match &ask.keys {
        Some(keys) => run.by_keys(keys, &ask.states).await,
        None => run.by_filter(&ask).await,
    };
    let Report { replayed, matched, .. } = run.report;
    tracing::info!(by = caller.name, class = ask.class, replayed, matched, dry_run = ask.dry_run, "replay");
    // What was moved before a failure has been moved: the problem carries the report so far.
    match done {
        Ok(()) => Ok(run.report),
        Err(problem) => Err(problem.with_all(run.report)),
    }
}

impl Run<'_> {
    async fn by_keys(&mut self, keys: &[String], states: &[JobState]) -> Result<(), Problem> {
        for key in keys {
            let stored = self.app.store.get(&self.known.at, key).await?;
            self.report.examined += 1;
            match stored {
                None => self.miss(key.clone()),
                Some(stored) => match stored.state {
                    Some(state) if states.contains(&state) => self.judge(key.clone(), state, &stored.record),
                    state => self.pass_by(key.clone(), state),
                },
            }
            self.move_chosen(CHUNK_JOBS).await?;
        }
        self.move_chosen(1).await
    }

    async fn by_filter(&mut self, ask: &Ask) -> Result<(), Problem> {
        let mut walk = Walk::new(&[self.known], &ask.states, ask.cursor.as_deref())?;
        while let Some(met) = walk.next(&self.app.store).await? {
            self.report.examined = walk.examined();
            if ask.filter.matches(&met.listed.record) {
                self.judge(met.listed.key, met.state, &met.listed.record);
            }
            self.move_chosen(CHUNK_JOBS).await?;
        }
        self.move_chosen(1).await?;
        self.report.next_cursor = walk.next_cursor();
        Ok(())
    }

    fn judge(&mut self, key: String, state: JobState, record: &Record) {
        self.report.matched += 1;
        *self.report.verdicts.entry(last_outcome(record)).or_default() += 1;
        // A job far back in the paced line leaves later, and the provider's window closes meanwhile.
        let line_ms = (self.report.replayable as f64 * self.report.interval_ms) as u64;
        let leaves_ms = self.app.store.now_ms() + line_ms;
        let window_ms = self.known.config.policy.dedup_window_ms;
        let why = match Verdict::of(record, window_ms, leaves_ms) {
            Verdict::Expired => {
                self.report.expired += 1;
                "expired"
            }
            Verdict::MayDouble if !self.accept_duplicates => {
                self.report.needs_confirmation += 1;
                "needs_confirmation"
            }
            Verdict::MayDouble | Verdict::Safe => {
                self.report.replayable += 1;
                return self.chosen.push((key, state));
            }
        };
        self.report.held_back.push(HeldBack { key, why, state: Some(state) });
    }

    /// Moves what is chosen once there is `enough` of it.
    async fn move_chosen(&mut self, enough: usize) -> Result<(), Problem> {
        if self.chosen.len() < enough {
            return Ok(());
        }
        let chosen = std::mem::take(&mut self.chosen);
        if self.report.dry_run {
            return Ok(());
        }
        let pace = ReplayPace { interval_ms: self.report.interval_ms };
        let words = self.app.store.replay(&self.known.at, pace, &chosen).await?;
        for ((key, _), word) in chosen.into_iter().zip(words) {
            match word {
                Replayed::Replayed => self.report.replayed += 1,
                Replayed::Moved(state) => self.pass_by(key, state),
                Replayed::Missing => self.miss(key),
            }
        }
        Ok(())
    }

    fn pass_by(&mut self, key: String, state: Option<JobState>) {
        self.report.moved += 1;
        self.report.held_back.push(HeldBack { key, why: "moved", state });
    }

    fn miss(&mut self, key: String) {
        self.report.missing += 1;
        self.report.held_back.push(HeldBack { key, why: "missing", state: None });
    }
}
