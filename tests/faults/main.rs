//! What breaks, end to end: workers killed, Redis gone, replies lost; the ledger is checked after each.
