-- What a batch of ends says about the pace of each budget, and the tokens that come back. The law reads these sums.
local function read_paces(spec, at)
  local paces = {}
  for i, of in ipairs(spec.budgets) do
    local f = call('HMGET', KEYS[at], 'changed_ms', 'answer_ms')
    paces[i] = {key = KEYS[at], quotas = of.quotas, quota_keys = {unpack(KEYS, at + 1, at + #of.quotas)},
      changed = tonumber(f[1] or 0), answer_ms = tonumber(f[2] or ''), accepted = 0, throttled = 0, late = 0,
      took_ms = 0, answers = 0, refunds = {}}
    at = at + 1 + #of.quotas
  end
  return paces, at
end

local function hear_accepted(paces, cost, took_ms)
  for _, pace in ipairs(paces) do
    pace.accepted, pace.took_ms, pace.answers = pace.accepted + cost, pace.took_ms + took_ms, pace.answers + 1
  end
end

-- A throttle of something claimed before the last cut or hold says nothing about what was done since.
local function hear_throttled(pace, claimed_at)
  local sum = claimed_at < pace.changed and 'late' or 'throttled'
  pace[sum] = pace[sum] + 1
end

-- The first throttle with a named wait while no hold was in force begins an episode; what is in flight belongs to it.
local function begin_episode(pace, now, claimed_at)
  if claimed_at < pace.changed then return end
  pace.changed = now
  call('HINCRBY', pace.key, 'episodes', 1)
  call('HSET', pace.key, 'episode_at_ms', string.format('%.0f', now), 'changed_ms', string.format('%.0f', now))
end

local function refund(paces, cost, claimed_at)
  for _, pace in ipairs(paces) do pace.refunds[claimed_at] = (pace.refunds[claimed_at] or 0) + cost end
end

local function write_paces(paces, now_us)
  for _, pace in ipairs(paces) do
    for field, sum in pairs({accepted = pace.accepted, throttled = pace.throttled, late_throttled = pace.late}) do
      if sum > 0 then call('HINCRBY', pace.key, field, sum) end
    end
    if pace.answers > 0 then
      local usual = pace.took_ms / pace.answers
      call('HSET', pace.key, 'answer_ms', string.format('%.0f', pace.answer_ms and (pace.answer_ms * 7 + usual) / 8 or usual))
    end
    for claimed_at, cost in pairs(pace.refunds) do give_back(pace, cost, claimed_at, now_us) end
  end
end
