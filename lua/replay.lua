-- Moves dead letters back to pending: counters to zero, history and send id kept, paced by one slot per job.
-- Refuses: a job that is not in the state it was seen in (two operators at once) or whose state no replay leaves;
--   a record or content that is gone.
-- ARGV: interval_ms, count_ttl_s, {key, state}...; KEYS after the class's 13: a record key per job.
-- Answers: ok now {replayed | moved state | missing}...
-- Called by: replays of the API; a repeat finds the job in pending and answers moved.
-- parts: record find
local now = now_ms()
local interval_ms, n, words = tonumber(ARGV[1]), (#ARGV - 2) / 2, {}
local slot = math.max(now, tonumber(call('HGET', CLASS, 'replay_slot') or 0))
local replayed = 0
for i = 1, n do
  local key, state = ARGV[1 + i * 2], tonumber(ARGV[2 + i * 2])
  local record = call('GET', KEYS[13 + i])
  local a = i * 2 - 1
  words[a], words[a + 1] = 'replayed', ''
  local h = read(record)
  if state < FAILED or state > UNCONFIRMED or not call('ZSCORE', KEYS[state], key) then
    words[a], words[a + 1] = 'moved', STATES[state_of(key)] or ''
  elseif not record or h and has(h.flags, RECEIPT) then
    words[a] = 'missing'
  else
    if h then
      h.spent, h.throttles, h.lapses, h.run, h.throttled_since = 0, 0, 0, 0, 0
      h.replays, h.flags = math.min(h.replays + 1, 65535), without(h.flags, CANCEL)
      call('SET', KEYS[13 + i], rewrite(record, h, history_of(record, h)))
    end
    call('ZREM', KEYS[state], key)
    call('ZADD', KEYS[PENDING], math.floor(slot), key)
    call('ZADD', PENDING_SINCE, 'NX', now, key)
    slot, replayed = slot + interval_ms, replayed + 1
  end
end
if replayed > 0 then
  call('HSET', CLASS, 'replay_slot', string.format('%.0f', slot))
  call('HINCRBY', MINUTE, '|replayed|' .. STATES[PENDING], replayed)
  call('EXPIRE', MINUTE, ARGV[2])
  wake()
end
return {'ok', now, unpack(words)}
