-- A person says what became of jobs that nobody else can tell about: accepted, or not and so to be sent again.
-- Refuses: a job that no person has to decide about any more, a record that is gone or cannot be read.
-- ARGV: count_ttl_s, {key, accepted (1 or 0), history line}...; KEYS after the class's 13: a record key per job, then a body
--   key per job.
-- Answers: ok now {confirmed state | moved state | missing ''}...
-- Called by: operators. A repeat finds the job submitted or pending and answers moved.
-- parts: record find
local now = now_ms()
local n, words, again = (#ARGV - 1) / 3, {}, false
for i = 1, n do
  local key, accepted, line, a = ARGV[i * 3 - 1], ARGV[i * 3] == '1', ARGV[i * 3 + 1], i * 2 - 1
  local record, state = call('GET', KEYS[13 + i]), state_of(key)
  local h = read(record)
  if not h or not state then
    words[a], words[a + 1] = 'missing', ''
  elseif state < FAILED or state > UNCONFIRMED or not accepted and has(h.flags, RECEIPT) then
    words[a], words[a + 1] = 'moved', STATES[state]
  else
    local target = accepted and SUBMITTED or PENDING
    h.flags = without(without(h.flags, AMBIGUOUS), CANCEL)
    call('ZREM', KEYS[state], key)
    call('ZADD', KEYS[target], now, key)
    if accepted then
      call('SET', KEYS[13 + i], receipt(record, h, line))
      call('UNLINK', KEYS[13 + n + i])
    else
      h.spent, h.throttles, h.lapses, h.run, h.throttled_since, h.sent_since = 0, 0, 0, 0, 0, 0
      h.replays = math.min(h.replays + 1, 65535)
      call('SET', KEYS[13 + i], rewrite(record, h, history_of(record, h) .. line))
      call('ZADD', PENDING_SINCE, 'NX', now, key)
      again = true
    end
    call('HINCRBY', MINUTE, '|confirmed|' .. STATES[target], 1)
    call('EXPIRE', MINUTE, ARGV[1])
    words[a], words[a + 1] = 'confirmed', STATES[target]
  end
end
if again then wake() end
return {'ok', now, unpack(words)}
