-- The end of an attempt whose lease was lost. An acceptance is never thrown away: from wherever the job is now it
-- becomes submitted. A second acceptance under another provider id is counted, and both ids are kept.
local function late(moves, i, key, record, h, o, history)
  if o.target ~= SUBMITTED then return 'stale', '' end
  local line, state = history:match('[^\n]*\n$') or '', state_of(key)
  local known = history_of(record, h)
  if state == SUBMITTED then
    local id = line:match('"message_id":"(.-)"')
    h.last_settled = o.deadline
    if not id or known:find('"message_id":"' .. id .. '"', 1, true) then
      moves.records[i] = rewrite(record, h, known)
      return 'already', STATES[SUBMITTED]
    end
    moves.records[i] = rewrite(record, h, known .. line)
    return 'twice', STATES[SUBMITTED]
  end
  h.attempts, h.last_settled, h.flags = h.attempts + 1, o.deadline, with(h.flags, LATE)
  if h.sent_since == 0 then h.sent_since = moves.now end
  if state and state ~= IN_FLIGHT then call('ZREM', KEYS[state], key) end
  move(moves, i, key, SUBMITTED, moves.now)
  store(moves, i, record, h, SUBMITTED, line)
  count(moves, o.count .. '|' .. STATES[SUBMITTED])
  return 'late', STATES[state or IN_FLIGHT]
end
