-- Whether throttles that each were about one recipient are so many that the next is about the credential.
local function is_crowded(sender, key, now)
  if now - sender.recipients_since > sender.trips.recipient_window_ms then
    sender.recipients, sender.recipients_since = '', now
  end
  local _, known = sender.recipients:gsub('\n', '\n')
  if known >= sender.trips.recipient_run then return true end
  if not ('\n' .. sender.recipients):find('\n' .. key .. '\n', 1, true) then
    sender.recipients = sender.recipients .. key .. '\n'
  end
  return false
end

-- The end of an attempt whose lease stands: what it says about the sender and the pace, then where the job goes.
local function order_hold(batch, hold_on, cause, hold_ms, probe_ms, claimed_at)
  local on = (hold_on == 1 and 0) or (hold_on == 3 and #batch.paces > 1 and 2) or 1
  local hold = ({[0] = batch.sender.class, batch.sender.credential})[on] or read_hold(batch.paces[on].key)
  local is_new = extend_hold(hold, batch.now, CAUSES[cause], hold_ms, probe_ms)
  if is_new and on > 0 and CAUSES[cause] == 'retry_after' then begin_episode(batch.paces[on], batch.now, claimed_at) end
end

local function live(batch, i, key, order, record, code, history)
  local delay_ms, counters, flags, marks, target, cancelled_target, signal, hold_on, cause, hold_ms, probe_ms, claimed_at =
    struct.unpack(LIVE, order, 15)
  local sender, moves = batch.sender, batch.moves
  local again, old = has(marks, DECIDED_AGAIN), record:byte(2)
  if signal == REFUSED and sender.credential.cause == 'suspect' and not again then return 'held', 'suspect' end
  if has(marks, PROBED) then
    for _, probed in ipairs({CLASS, unpack(batch.budget_keys)}) do call('HDEL', probed, 'probe_out_until') end
  end
  if signal == RECIPIENT_THROTTLED then
    local crowded = is_crowded(sender, key, batch.now)
    signal, hold_on = crowded and THROTTLED or ANSWERED, crowded and hold_on or 0
  end
  hear(sender, again and 0 or signal, batch.now, claimed_at)
  if signal == CLEAN then hear_accepted(batch.paces, cost_of(record), batch.now - claimed_at) end
  if signal == THROTTLED then hear_throttled(batch.paces[1], claimed_at) end
  if signal == ACCOUNT_THROTTLED then hear_throttled(batch.paces[2] or batch.paces[1], claimed_at) end
  if hold_on > 0 then order_hold(batch, hold_on, cause, hold_ms, probe_ms, claimed_at) end
  if has(marks, REFUND) then refund(batch.paces, cost_of(record), claimed_at) end
  if has(old, CANCEL) then target = cancelled_target end
  local is_over, has_body = target == SUBMITTED or target >= EXPIRED, has(old, BODY)
  flags = flags + (is_over and RECEIPT or has_body and BODY or 0) + (has(old, ERASED) and ERASED or 0)
  if is_over and has_body then moves.bodies[#moves.bodies + 1] = i end
  moves.records[i] = settled_record(record, order, counters, flags, marks, batch.now6, is_over, history)
  move(moves, key, target, target <= PENDING and batch.now + delay_ms or nil)
  count(moves, code .. '|' .. STATES[target])
  return 'moved', STATES[target]
end
