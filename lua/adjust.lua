-- Puts another pace in force, if nobody changed it since it was read.
-- Refuses: a version that is not the present one (stale).
-- ARGV: version, rate_per_s, burst, law (what the law remembers; only Rust reads it), cause ('' = nothing people need
--   to see), is_cut; KEYS after the class's 13: the budget, its decisions.
-- Answers: ok now · stale
-- Called by: whichever worker applies the law first. A repeat is stale.
-- parts: budget
local now, now_us = now_ms()
local key = KEYS[14]
local f = call('HMGET', key, 'version', 'pace_per_s')
if (f[1] or '0') ~= ARGV[1] then return {'stale'} end
reshape(key, now_us, tonumber(ARGV[2]), tonumber(ARGV[3]))
call('HSET', key, 'law', ARGV[4])
call('HINCRBY', key, 'version', 1)
if ARGV[6] == '1' then call('HSET', key, 'changed_ms', string.format('%.0f', now)) end
if ARGV[5] ~= '' then
  call('XADD', KEYS[15], 'MAXLEN', '~', 1000, '*', 'from_per_s', f[2] or '', 'to_per_s', ARGV[2], 'burst', ARGV[3], 'cause', ARGV[5])
end
return {'ok', now}
