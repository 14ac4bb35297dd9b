-- A claim leaves its nonce, deadline, probe and keys behind for as long as its lease stands, so that a repeat of
-- the call after a lost reply gets the same jobs instead of more.
local function lease(jobs, deadline, nonce, lease_ms, probe)
  -- Formatted once: a number handed to Redis is formatted each time.
  local score = string.format('%.0f', deadline)
  local index, kept = {}, {nonce, string.format('%s %.0f %s', score, probe.probe_ms, probe.cause)}
  for i, job in ipairs(jobs) do
    index[i * 2 - 1], index[i * 2] = score, job.key
    kept[i + 2] = job.key
  end
  call('ZADD', KEYS[IN_FLIGHT], unpack(index))
  call('SET', KEYS[14], table.concat(kept, '\n'), 'PX', lease_ms)
end

local function repeated(nonce, now, job_prefix)
  local kept = call('GET', KEYS[14])
  if not kept or kept:sub(1, #nonce + 1) ~= nonce .. '\n' then return nil end
  local lines, jobs = {}, {}
  for line in kept:gmatch('[^\n]+') do lines[#lines + 1] = line end
  local deadline, probe_ms, cause = lines[2]:match('^(%d+) (%d+) (.*)$')
  jobs.deadline, jobs.probe_ms, jobs.cause = tonumber(deadline), tonumber(probe_ms), cause
  for i = 3, #lines do
    if tonumber(call('ZSCORE', KEYS[IN_FLIGHT], lines[i]) or 0) == jobs.deadline and jobs.deadline > now then
      jobs[#jobs + 1] = {key = lines[i]}
    end
  end
  return read_records(jobs, job_prefix)
end
