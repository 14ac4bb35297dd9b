-- The due heads of queued and pending and what claim does with them. With retry credit the older of both goes;
-- without it first attempts go, and retries only when no first attempt is due, so that a store of retries never
-- keeps new jobs waiting. Each job remembers the credit after it.
local function due_heads(now, max, credit, step)
  local heads = {}
  local q = call('ZRANGEBYSCORE', KEYS[QUEUED], '-inf', now, 'WITHSCORES', 'LIMIT', 0, max)
  local p = call('ZRANGEBYSCORE', KEYS[PENDING], '-inf', now, 'WITHSCORES', 'LIMIT', 0, max)
  local i, j = 1, 1
  while #heads < max and (q[i] or p[j]) do
    if q[i] and (not p[j] or credit < 1 or tonumber(q[i + 1]) <= tonumber(p[j + 1])) then
      credit = math.min(step.most, credit + step.first)
      heads[#heads + 1], i = {key = q[i], from = QUEUED, credit = credit}, i + 2
    else
      credit = math.max(0, credit - 1)
      heads[#heads + 1], j = {key = p[j], from = PENDING, credit = credit}, j + 2
    end
  end
  return heads
end

-- Reads the records of jobs; `job_prefix` spells their keys. Before the first write of any script, so that a
-- record on its way to another node stops the call while nothing has changed.
local function read_records(jobs, job_prefix)
  local keys = {}
  for i, job in ipairs(jobs) do keys[i] = job_prefix .. job.key end
  if #keys == 0 then return jobs end
  for i, record in ipairs(call('MGET', unpack(keys))) do
    local job, h = jobs[i], glance(record)
    job.record, job.h = record, h
  end
  return jobs
end

-- How long until something is due, or -1.
local function next_due(now)
  local least
  for state = QUEUED, PENDING do
    local first = call('ZRANGE', KEYS[state], 0, 0, 'WITHSCORES')[2]
    if first then least = math.min(least or math.huge, tonumber(first)) end
  end
  return least and math.max(0, least - now) or -1
end

-- Takes the first `n` heads out of their indexes: they are a prefix of both.
local function drop_heads(heads, n)
  local of = {0, 0}
  for i = 1, n do of[heads[i].from] = of[heads[i].from] + 1 end
  for state = QUEUED, PENDING do
    if of[state] > 0 then call('ZREMRANGEBYRANK', KEYS[state], 0, of[state] - 1) end
  end
end
