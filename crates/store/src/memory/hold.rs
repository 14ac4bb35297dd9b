//! Holds, and what ends say about the sender: `part/hold.lua`, `part/signal.lua`, `hold.lua`.

use super::budget::Budget;
use super::world::World;
use crate::keys::ClassRef;
use crate::movement::Held;
use paceline_core::decide::{HoldCause, Signal};
use paceline_core::policy::Trips;

/// A hold as it was put; it stays written after its end.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) cause: HoldCause,
    /// `None`: until someone lifts it.
    pub(super) until_ms: Option<u64>,
    /// Above zero: at its end one job goes and the hold stands again.
    pub(super) probe_ms: u64,
    /// When it came into force.
    pub(super) since_ms: u64,
    /// The lease of the probe that is out.
    pub(super) out_until_ms: u64,
    pub(super) by: String,
}

impl Standing {
    /// It silences: entirely, or but for a probe.
    pub(super) fn is_in_force(&self, now_ms: u64) -> bool {
        self.is_silent(now_ms) || self.probe_ms > 0
    }

    pub(super) fn is_silent(&self, now_ms: u64) -> bool {
        self.until_ms.is_none_or(|until_ms| until_ms > now_ms)
    }
}

/// Automatic holds only extend; a person's pause is never overwritten by one, and a hold that probes keeps its cause
/// and its probes when one without a probe meets it. Whether none was in force before.
pub(super) fn extend(
    hold: &mut Option<Standing>,
    now_ms: u64,
    cause: HoldCause,
    delay_ms: u64,
    probe_ms: u64,
) -> bool {
    let until_ms = now_ms + delay_ms;
    let out_until_ms = hold.as_ref().map_or(0, |hold| hold.out_until_ms);
    let automatic = |cause, until_ms, probe_ms, since_ms| {
        let by = "worker".into();
        Some(Standing { cause, until_ms: Some(until_ms), probe_ms, by, since_ms, out_until_ms })
    };
    let Some(old) = hold.as_ref().filter(|hold| hold.is_in_force(now_ms)).cloned() else {
        *hold = automatic(cause, until_ms, probe_ms, now_ms);
        return true;
    };
    let Some(old_until_ms) = old.until_ms.filter(|_| old.cause != HoldCause::Pause) else { return false };
    if old_until_ms >= until_ms && (old.probe_ms > 0 || probe_ms == 0) {
        return false;
    }
    let keeps = old.probe_ms > 0 && probe_ms == 0;
    let (cause, probe_ms) = if keeps { (old.cause, old.probe_ms) } else { (cause, probe_ms) };
    let since_ms = if old.cause == cause { old.since_ms } else { now_ms };
    *hold = automatic(cause, until_ms.max(old_until_ms), probe_ms, since_ms);
    false
}

/// What was sent under a hold that probes, and was accepted, releases it.
fn releases(hold: Option<&Standing>, claimed_ms: u64, cause: Option<HoldCause>) -> bool {
    hold.is_some_and(|hold| {
        hold.probe_ms > 0 && claimed_ms >= hold.since_ms && cause.is_none_or(|cause| hold.cause == cause)
    })
}

/// The sender of a class: the class itself and its credential, each with its hold and its runs.
pub(super) struct Sender<'a> {
    pub(super) class_hold: &'a mut Option<Standing>,
    pub(super) terminal_run: &'a mut u64,
    pub(super) credential: &'a mut Budget,
}

impl Sender<'_> {
    pub(super) fn hear(&mut self, signal: Signal, now_ms: u64, claimed_ms: u64, trips: &Trips) {
        let credential = &mut *self.credential;
        match signal {
            Signal::None => {}
            Signal::Clean => {
                (credential.refused_run, credential.failing_run, *self.terminal_run) = (0, 0, 0);
                if releases(self.class_hold.as_ref(), claimed_ms, None) {
                    *self.class_hold = None;
                }
                if releases(credential.hold.as_ref(), claimed_ms, None) {
                    credential.lift(now_ms);
                }
            }
            Signal::Failing => {
                credential.failing_run += 1;
                let open = credential.hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::Outage);
                if credential.failing_run >= u64::from(trips.failing_run) && !open {
                    let probe_ms = trips.outage_probe_ms;
                    extend(&mut credential.hold, now_ms, HoldCause::Outage, probe_ms, probe_ms);
                }
            }
            Signal::Throttled
            | Signal::AccountThrottled
            | Signal::RecipientThrottled
            | Signal::Answered
            | Signal::Refused
            | Signal::Terminal => {
                credential.failing_run = 0;
                if releases(credential.hold.as_ref(), claimed_ms, Some(HoldCause::Outage)) {
                    credential.lift(now_ms);
                }
            }
        }
        let probe_ms = trips.suspect_probe_ms;
        if signal == Signal::Refused {
            credential.refused_run += 1;
            if credential.refused_run >= u64::from(trips.refused_run) {
                extend(&mut credential.hold, now_ms, HoldCause::Suspect, probe_ms, probe_ms);
            }
        } else if signal == Signal::Terminal {
            *self.terminal_run += 1;
            if *self.terminal_run >= u64::from(trips.terminal_run) {
                extend(self.class_hold, now_ms, HoldCause::Suspect, probe_ms, probe_ms);
            }
        }
    }
}

impl World {
    /// `hold.lua`
    pub(super) fn hold(
        &mut self,
        class: &ClassRef,
        on: Held<'_>,
        cause: Option<HoldCause>,
        delay_ms: Option<u64>,
        by: &str,
    ) {
        let now_ms = self.now_ms;
        let old = match on {
            Held::Class => self.line(class).hold.take(),
            Held::Budget(name) => {
                let budget = self.budget(class, name);
                let old = budget.hold.clone();
                budget.lift(now_ms);
                old
            }
        };
        if let Some(window) = old.as_ref().filter(|old| old.cause == HoldCause::Window) {
            self.line(class).window_open_until_ms = window.until_ms.unwrap_or(0);
        }
        let Some(cause) = cause else { return };
        // A timed pause over a longer automatic hold lasts as long as that would have: who wants it gone lifts it.
        let automatic_ms = old.filter(|old| old.cause != HoldCause::Pause).and_then(|old| old.until_ms);
        let until_ms = delay_ms.map(|ms| (now_ms + ms).max(automatic_ms.unwrap_or(0)));
        let by = by.to_owned();
        let pause = Standing { cause, until_ms, probe_ms: 0, by, since_ms: now_ms, out_until_ms: 0 };
        match on {
            Held::Class => self.line(class).hold = Some(pause),
            Held::Budget(name) => self.budget(class, name).hold = Some(pause),
        }
    }

    /// `window.lua`
    pub(super) fn window(&mut self, class: &ClassRef, closed_ms: u64) {
        let now_ms = self.now_ms;
        let line = self.line(class);
        if closed_ms > 0 && now_ms >= line.window_open_until_ms {
            extend(&mut line.hold, now_ms, HoldCause::Window, closed_ms, 0);
        } else if closed_ms == 0 && line.hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::Window) {
            line.hold = None;
        }
    }
}
