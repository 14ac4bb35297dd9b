-- A hold is one record {cause, until, by} on a class or budget hash. With `hold_probe_ms` above zero one job
-- goes at its end and the hold stands again, until something releases it; until -1 has no end. The next probe
-- waits for the end of the one that is out, or of its lease.
local function read_hold(key)
  local f = call('HMGET', key, 'hold_cause', 'hold_until', 'hold_probe_ms', 'hold_since', 'probe_out_until')
  return {key = key, cause = f[1], ends = tonumber(f[2] or 0), probe_ms = tonumber(f[3] or 0),
    since = tonumber(f[4] or 0), out = tonumber(f[5] or 0)}
end

-- In force: it silences, now or but for a probe.
local function in_force(hold, now)
  return hold.cause and (hold.ends == -1 or hold.ends > now or hold.probe_ms > 0)
end

-- Automatic holds only extend; a person's pause is never overwritten by one, and a hold that probes keeps its cause
-- and its probes when one without a probe meets it.
local function extend_hold(hold, now, cause, delay_ms, probe_ms)
  local ends, since, stands = now + delay_ms, now, in_force(hold, now)
  if stands then
    if hold.cause == 'pause' or hold.ends == -1 then return end
    if hold.ends >= ends and (hold.probe_ms > 0 or probe_ms == 0) then return end
    if hold.probe_ms > 0 and probe_ms == 0 then cause, probe_ms = hold.cause, hold.probe_ms end
    ends, since = math.max(ends, hold.ends), hold.cause == cause and hold.since or now
  end
  hold.cause, hold.ends, hold.probe_ms, hold.since = cause, ends, probe_ms, since
  call('HSET', hold.key, 'hold_cause', cause, 'hold_until', string.format('%.0f', ends), 'hold_probe_ms', probe_ms,
    'hold_by', 'worker', 'hold_since', string.format('%.0f', since))
  return not stands
end

-- What was held goes on at the pace from here, not with a burst.
local function lift_hold(hold, now)
  if not hold.cause then return end
  hold.cause, hold.ends, hold.probe_ms, hold.out = false, 0, 0, 0
  call('HDEL', hold.key, 'hold_cause', 'hold_until', 'hold_probe_ms', 'hold_by', 'hold_since', 'probe_out_until')
  call('HSET', hold.key, 'released_ms', string.format('%.0f', now))
end
