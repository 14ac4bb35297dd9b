-- A decision as Rust packs it (crates/store/src/order.rs), and what it does to a header.
local ORDER = '>I6c8I6BHBBHBBBBBBBI6I6'
local STARTS_THROTTLE, STARTS_WINDOW, REFUND, PROBE, DECIDED_AGAIN = 1, 2, 4, 8, 16
local UNREAD = ('\0'):rep(8)
local CAUSES = {'pause', 'retry_after', 'quota', 'suspect', 'outage', 'window'}

local function read_order(packed)
  local o = {}
  o.deadline, o.birth, o.delay_ms, o.spent, o.throttles, o.lapses, o.run, o.attempts, o.flags, o.marks, o.target,
    o.cancelled_target, o.signal, o.hold_on, o.hold_cause, o.hold_ms, o.hold_probe_ms = struct.unpack(ORDER, packed)
  return o
end

local function apply(h, o, now)
  local cancel = has(h.flags, CANCEL)
  h.spent, h.throttles, h.lapses, h.run, h.attempts = o.spent, o.throttles, o.lapses, o.run, o.attempts
  local kept = (has(h.flags, BODY) and BODY or 0) + (has(h.flags, ERASED) and ERASED or 0)
  h.flags = kept + o.flags
  if has(o.marks, STARTS_THROTTLE) and h.throttled_since == 0 then h.throttled_since = now end
  if has(o.marks, STARTS_WINDOW) and h.sent_since == 0 then h.sent_since = now end
  h.last_settled = o.deadline
  return cancel and o.cancelled_target or o.target
end
