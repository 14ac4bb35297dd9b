-- Moves waiting jobs to cancelled, or to unconfirmed where any attempt may have been accepted; marks those in
-- flight, so that the next end that is not an acceptance does it.
-- Refuses: a job that is over or waits for a person already.
-- ARGV: count_ttl_s, {key}...; KEYS after the class's 13: a record key per job, then a body key per job.
-- Answers: ok now {cancelled state | marked in_flight | over state | missing ''}...
-- Called by: producers and operators. A repeat answers over or marked.
-- parts: record find
local now = now_ms()
local n, words = #ARGV - 1, {}
for i = 1, n do
  local key, a = ARGV[1 + i], i * 2 - 1
  local record, state = call('GET', KEYS[13 + i]), state_of(ARGV[1 + i])
  local h = read(record)
  if not h or not state then
    words[a], words[a + 1] = 'missing', ''
  elseif state == IN_FLIGHT then
    call('SETRANGE', KEYS[13 + i], 1, string.char(with(h.flags, CANCEL)))
    words[a], words[a + 1] = 'marked', STATES[IN_FLIGHT]
  elseif state > PENDING then
    words[a], words[a + 1] = 'over', STATES[state]
  else
    local target = has(h.flags, AMBIGUOUS) and UNCONFIRMED or CANCELLED
    if target == CANCELLED then
      call('SET', KEYS[13 + i], receipt(record, h, history_of(record, h):match('[^\n]*\n$') or ''))
      call('UNLINK', KEYS[13 + n + i])
    end
    call('ZREM', KEYS[state], key)
    call('ZREM', PENDING_SINCE, key)
    call('ZADD', KEYS[target], now, key)
    call('HINCRBY', MINUTE, '|cancelled|' .. STATES[target], 1)
    call('EXPIRE', MINUTE, ARGV[1])
    words[a], words[a + 1] = 'cancelled', STATES[target]
  end
end
return {'ok', now, unpack(words)}
