-- Reads how many jobs of a class are in which state, and how old its oldest are: cardinalities of the truth.
-- Refuses: nothing; writes nothing.
-- ARGV: none; KEYS after the class's 13: its budgets.
-- Answers: ok now {count of each state} scheduled oldest_due_ms oldest_pending_ms (-1 = none) {cause until by}...
-- Called by: the API and the metrics.
local now = now_ms()
local answer = {'ok', now}
for state = QUEUED, CANCELLED do answer[2 + state] = call('ZCARD', KEYS[state]) end
answer[12] = call('ZCOUNT', KEYS[QUEUED], '(' .. now, '+inf')
local function age(index)
  local first = tonumber(call('ZRANGE', index, 0, 0, 'WITHSCORES')[2] or now + 1)
  return first <= now and now - first or -1
end
answer[13] = math.max(age(KEYS[QUEUED]), age(KEYS[PENDING]))
answer[14] = age(PENDING_SINCE)
for _, key in ipairs({CLASS, unpack(KEYS, 14)}) do
  local f = call('HMGET', key, 'hold_cause', 'hold_until', 'hold_by', 'hold_probe_ms')
  local ends = tonumber(f[2] or 0)
  local stands = f[1] and (ends == -1 or ends > now or tonumber(f[4] or 0) > 0)
  for _, value in ipairs({stands and f[1] or '', stands and f[2] or '0', stands and f[3] or ''}) do
    answer[#answer + 1] = value
  end
end
return answer
