-- A hold is one record {cause, until, by} on a class or budget hash. With `hold_probe_ms` above zero one job
-- goes at its end and the hold stands again, until something releases it; until -1 has no end.
local function read_hold(key)
  local f = call('HMGET', key, 'hold_cause', 'hold_until', 'hold_probe_ms')
  return {key = key, cause = f[1], ends = tonumber(f[2] or 0), probe_ms = tonumber(f[3] or 0)}
end

-- In force: it silences, now or but for a probe.
local function in_force(hold, now)
  return hold.cause and (hold.ends == -1 or hold.ends > now or hold.probe_ms > 0)
end

-- Automatic holds only extend; a person's pause is never overwritten by one.
local function extend_hold(hold, now, cause, delay_ms, probe_ms)
  local ends = now + delay_ms
  if in_force(hold, now) and (hold.cause == 'pause' or hold.ends == -1 or hold.ends >= ends) then return end
  hold.cause, hold.ends, hold.probe_ms = cause, ends, probe_ms
  call('HSET', hold.key, 'hold_cause', cause, 'hold_until', string.format('%.0f', ends), 'hold_probe_ms', probe_ms,
    'hold_by', 'worker', 'hold_since', string.format('%.0f', now))
end

local function lift_hold(hold)
  hold.cause, hold.ends, hold.probe_ms = false, 0, 0
  call('HDEL', hold.key, 'hold_cause', 'hold_until', 'hold_probe_ms', 'hold_by', 'hold_since')
end
