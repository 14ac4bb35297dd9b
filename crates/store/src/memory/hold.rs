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

/// Automatic holds only extend; a person's pause is never overwritten by one.
pub(super) fn extend(
    hold: &mut Option<Standing>,
    now_ms: u64,
    cause: HoldCause,
    delay_ms: u64,
    probe_ms: u64,
) {
    let until_ms = now_ms + delay_ms;
    let stays = |hold: &Standing| {
        hold.is_in_force(now_ms)
            && (hold.cause == HoldCause::Pause || hold.until_ms.is_none_or(|other_ms| other_ms >= until_ms))
    };
    if !hold.as_ref().is_some_and(stays) {
        *hold = Some(Standing { cause, until_ms: Some(until_ms), probe_ms, by: "worker".into() });
    }
}

fn release(hold: &mut Option<Standing>, cause: Option<HoldCause>) {
    let goes = |hold: &Standing| hold.probe_ms > 0 && cause.is_none_or(|cause| hold.cause == cause);
    if hold.as_ref().is_some_and(goes) {
        *hold = None;
    }
}

/// The sender of a class: the class itself and its credential, each with its hold and its runs.
pub(super) struct Sender<'a> {
    pub(super) class_hold: &'a mut Option<Standing>,
    pub(super) terminal_run: &'a mut u64,
    pub(super) credential: &'a mut Budget,
}

impl Sender<'_> {
    pub(super) fn hear(&mut self, signal: Signal, now_ms: u64, trips: &Trips) {
        let credential = &mut *self.credential;
        match signal {
            Signal::None => {}
            Signal::Clean => {
                (credential.refused_run, credential.failing_run, *self.terminal_run) = (0, 0, 0);
                release(self.class_hold, None);
                release(&mut credential.hold, None);
            }
            Signal::Failing => {
                credential.failing_run += 1;
                let open = credential.hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::Outage);
                if credential.failing_run >= u64::from(trips.failing_run) && !open {
                    let probe_ms = trips.outage_probe_ms;
                    extend(&mut credential.hold, now_ms, HoldCause::Outage, probe_ms, probe_ms);
                }
            }
            Signal::Throttled | Signal::Refused | Signal::Terminal => {
                credential.failing_run = 0;
                release(&mut credential.hold, Some(HoldCause::Outage));
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
        let until_ms = delay_ms.map(|ms| self.now_ms + ms);
        let hold = match on {
            Held::Class => &mut self.line(class).hold,
            Held::Budget(name) => &mut self.budget(class, name).hold,
        };
        *hold = cause.map(|cause| Standing { cause, until_ms, probe_ms: 0, by: by.to_owned() });
    }
}
