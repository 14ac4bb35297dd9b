-- The end of an attempt whose lease was lost. An acceptance is never thrown away: from wherever the job is now it
-- becomes submitted. A second acceptance under another provider id is counted, and both ids are kept.
local function late(moves, i, key, record, order, codes, history)
  local deadline, _, _, _, _, _, target, _, signal, _, _, _, _, claimed_at = struct.unpack(ORDER, order)
  if target ~= SUBMITTED then return 'stale', '' end
  local h, line, state = read(record), last_line(history), state_of(key)
  local known = history_of(record, h)
  h.last_settled = deadline
  if state == SUBMITTED then
    local id = line:match('"message_id":"(.-)"')
    local is_same = not id or known:find('"message_id":"' .. id .. '"', 1, true)
    moves.records[i] = rewrite(record, h, is_same and known or known .. line)
    return is_same and 'already' or 'twice', STATES[SUBMITTED]
  end
  h.attempts, h.flags = h.attempts + 1, with(h.flags, LATE)
  if h.sent_since == 0 then h.sent_since = moves.now end
  if state and state ~= IN_FLIGHT then call('ZREM', KEYS[state], key) end
  move(moves, key, SUBMITTED)
  if has(h.flags, BODY) then moves.bodies[#moves.bodies + 1] = i end
  moves.records[i] = receipt(record, h, line)
  count(moves, codes .. '|' .. STATES[SUBMITTED])
  return 'late', STATES[state or IN_FLIGHT], signal, claimed_at
end
