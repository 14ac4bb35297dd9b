-- Moves jobs that a worker still holds, and that Redis believes are waiting, to unconfirmed: it forgot their claim, and
-- sent again they might arrive twice.
-- Refuses: a job whose lease stands, one that is elsewhere, one of another birth.
-- ARGV: count_ttl_s, {key, birth, deadline}...; KEYS after the class's 13: a record key per job.
-- Answers: ok now {held | doubted | elsewhere}...
-- Called by: a worker after trouble with Redis, where the provider does not deduplicate and a person is to be asked.
-- parts: record find
local now = now_ms()
local n, words = (#ARGV - 1) / 3, {}
if n == 0 then return {'ok', now} end
local found = call('MGET', unpack(KEYS, 14, 13 + n))
for i = 1, n do
  local key, birth, deadline = ARGV[i * 3 - 1], ARGV[i * 3], tonumber(ARGV[i * 3 + 1])
  local h, state = read(found[i]), state_of(key)
  words[i] = 'elsewhere'
  if h and h.birth == birth and state == IN_FLIGHT then
    if tonumber(call('ZSCORE', KEYS[IN_FLIGHT], key)) == deadline then words[i] = 'held' end
  elseif h and h.birth == birth and state and state <= PENDING and h.last_settled < deadline then
    call('SETRANGE', KEYS[13 + i], 1, string.char(with(without(h.flags, STARTED), AMBIGUOUS)))
    call('ZREM', KEYS[state], key)
    call('ZREM', PENDING_SINCE, key)
    call('ZADD', KEYS[UNCONFIRMED], now, key)
    call('HINCRBY', MINUTE, '|doubted|' .. STATES[UNCONFIRMED], 1)
    call('EXPIRE', MINUTE, ARGV[1])
    words[i] = 'doubted'
  end
end
return {'ok', now, unpack(words)}
