//! A decision packed for `settle.lua`: `lua/part/order.lua` reads it with one call.

use crate::movement::Settlement;
use crate::record::{AMBIGUOUS, LATE, STARTED};
use paceline_core::decide::{HoldCause, HoldOn};

const STARTS_THROTTLE: u8 = 1;
const STARTS_WINDOW: u8 = 2;
const REFUND: u8 = 4;
const PROBED: u8 = 8;
const DECIDED_AGAIN: u8 = 16;

/// The order of a settlement, as `part/order.lua` unpacks it.
pub(crate) fn pack(settlement: &Settlement) -> Vec<u8> {
    let decision = &settlement.decision;
    let mut order = Vec::with_capacity(72);
    time(&mut order, settlement.deadline_ms);
    order.extend(settlement.birth);
    time(&mut order, decision.delay_ms);
    let counters = decision.counters;
    order.push(counters.spent);
    order.extend(counters.throttles.to_be_bytes());
    order.extend([counters.lapses, counters.run]);
    order.extend(counters.attempts.to_be_bytes());
    let flags = decision.flags;
    order.push(bits([
        (flags.ambiguous, AMBIGUOUS),
        (flags.started, STARTED),
        (flags.late, LATE),
        (false, 0),
    ]));
    order.push(bits([
        (decision.starts_throttle, STARTS_THROTTLE),
        (decision.starts_window, STARTS_WINDOW),
        (decision.refund, REFUND),
        (settlement.probed, PROBED),
        (settlement.decided_again, DECIDED_AGAIN),
    ]));
    order.extend([decision.target.number(), decision.cancelled_target.number(), decision.signal as u8]);
    let hold = decision.hold;
    order.push(hold.map_or(0, |hold| hold_on(hold.on)));
    order.push(hold.map_or(0, |hold| cause(hold.cause)));
    time(&mut order, hold.map_or(0, |hold| hold.delay_ms));
    time(&mut order, hold.map_or(0, |hold| hold.probe_ms));
    time(&mut order, settlement.claimed_ms);
    order
}

fn bits<const N: usize>(flags: [(bool, u8); N]) -> u8 {
    flags.iter().filter(|(set, _)| *set).fold(0, |bits, (_, bit)| bits | bit)
}

fn time(order: &mut Vec<u8>, ms: u64) {
    order.extend(&ms.to_be_bytes()[2..]);
}

fn hold_on(on: HoldOn) -> u8 {
    match on {
        HoldOn::Class => 1,
        HoldOn::Credential => 2,
        HoldOn::Account => 3,
    }
}

/// The place of a cause in `CAUSES` of `part/order.lua`.
fn cause(cause: HoldCause) -> u8 {
    HoldCause::ALL.iter().position(|&other| other == cause).map_or(0, |index| index as u8 + 1)
}
