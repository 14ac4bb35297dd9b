-- Looks at jobs by key, record and indexes together, and moves those that stand wrong to where the caller says.
-- Refuses: to move a job that is not as it was seen.
-- ARGV: count_ttl_s, {key, seen ('' = only look), target (0 = out of every index)}...;
--   KEYS after the class's 13: a record key per job, then a body key per job.
-- Answers: ok now {states seen record | mended '' '' | changed '' ''}... ; states is a bit per state, seen what to send back
-- Called by: the reconciler, which walks records and indexes. A repeat finds the job changed, or right.
local now = now_ms()
local n = (#ARGV - 1) / 3
local records, looks = call('MGET', unpack(KEYS, 14, 13 + n)), {}
for i = 1, n do
  local key, found, states = ARGV[i * 3 - 1], {}, 0
  for state = QUEUED, CANCELLED do
    if call('ZSCORE', KEYS[state], key) then found[#found + 1], states = state, states + 2 ^ state end
  end
  -- Version, flags, birth and counters: what a decision about its place was made on.
  looks[i] = {key = key, found = found, states = states, seen = states .. ':' .. (records[i] or ''):sub(1, 33)}
end

local answer = {'ok', now}
for i, look in ipairs(looks) do
  local seen, target, word = ARGV[i * 3], tonumber(ARGV[i * 3 + 1]), 'changed'
  if seen == look.seen then
    word = 'mended'
    for _, state in ipairs(look.found) do
      if state ~= target then call('ZREM', KEYS[state], look.key) end
    end
    if target > 0 then call('ZADD', KEYS[target], 'NX', now, look.key) end
    if target == PENDING then call('ZADD', PENDING_SINCE, 'NX', now, look.key) else call('ZREM', PENDING_SINCE, look.key) end
    if not records[i] then call('UNLINK', KEYS[13 + n + i]) end
    call('HINCRBY', MINUTE, '|reconciled|' .. (STATES[target] or 'gone'), 1)
    call('EXPIRE', MINUTE, ARGV[1])
  end
  local a = #answer
  answer[a + 1], answer[a + 2], answer[a + 3] = seen == '' and look.states or word, look.seen, records[i] or ''
end
return answer
