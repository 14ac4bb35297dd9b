-- Marks jobs as started: their worker is about to write, so a lapse from here on is ambiguous.
-- Refuses: a job whose lease is not this one's any more, or that has another birth.
-- ARGV: deadline, {key, birth}...; KEYS after the class's 13: a record key per job.
-- Answers: ok now {ok | stale}...
-- Called by: the worker before it writes, where the provider does not deduplicate. A repeat changes nothing.
-- parts: record
local now = now_ms()
local deadline, n = tonumber(ARGV[1]), (#ARGV - 1) / 2
if n == 0 then return {'ok', now} end
local keys, records, words = {}, {}, {}
for i = 1, n do keys[i], records[i] = ARGV[i * 2], KEYS[13 + i] end
local leases = call('ZMSCORE', KEYS[IN_FLIGHT], unpack(keys))
local found = call('MGET', unpack(records))
for i = 1, n do
  local h = read(found[i])
  if h and h.birth == ARGV[i * 2 + 1] and tonumber(leases[i] or 0) == deadline and deadline > now then
    call('SETRANGE', records[i], 1, string.char(with(h.flags, STARTED)))
    words[i] = 'ok'
  else
    words[i] = 'stale'
  end
end
return {'ok', now, unpack(words)}
