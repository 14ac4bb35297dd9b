-- Moves lapsed leases to a new short one, for Rust to settle what became of them.
-- Refuses: nothing; a lease that stands is not touched.
-- ARGV: max_jobs, lease_ms, job_prefix, body_prefix.
-- Answers: ok now deadline {job}...
-- Called by: the reaper in every worker. Counters rise in the settle that follows, so a lost reply counts nothing.
-- parts: record heads claimed
local now = now_ms()
local keys = call('ZRANGEBYSCORE', KEYS[IN_FLIGHT], '-inf', now, 'LIMIT', 0, ARGV[1])
local jobs, index, deadline = {}, {}, now + tonumber(ARGV[2])
for i, key in ipairs(keys) do jobs[i] = {key = key, from = IN_FLIGHT} end
read_records(jobs, ARGV[3])
for i, job in ipairs(jobs) do
  deadline = math.max(deadline, (job.h and job.h.last_settled or 0) + 1)
end
for i, job in ipairs(jobs) do index[i * 2 - 1], index[i * 2] = deadline, job.key end
if #jobs > 0 then call('ZADD', KEYS[IN_FLIGHT], unpack(index)) end
return hand_out({'ok', now, deadline}, jobs, ARGV[4])
