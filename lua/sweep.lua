-- Forgets jobs that have been over for longer than they are kept: record and body first, then the index, so that
-- a call that breaks off leaves an entry that the next one finds.
-- Refuses: states that wait for a person are never passed here.
-- ARGV: state, older_than_ms, max_jobs, job_prefix, body_prefix.
-- Answers: ok now swept
-- Called by: the sweeper in every worker, in small chunks.
local now = now_ms()
local index = KEYS[tonumber(ARGV[1])]
local keys = call('ZRANGEBYSCORE', index, '-inf', now - tonumber(ARGV[2]), 'LIMIT', 0, ARGV[3])
if #keys == 0 then return {'ok', now, 0} end
local content = {}
for i, key in ipairs(keys) do content[i * 2 - 1], content[i * 2] = ARGV[4] .. key, ARGV[5] .. key end
call('UNLINK', unpack(content))
call('ZREM', index, unpack(keys))
return {'ok', now, #keys}
