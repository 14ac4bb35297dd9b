-- What ends say about the sender: runs of them put holds on it, an acceptance releases those that probe.
-- The thresholds and times are the caller's.
local CLEAN, THROTTLED, FAILING, REFUSED, TERMINAL = 1, 2, 3, 4, 5

local function read_trips(a)
  return {refused = tonumber(ARGV[a]), terminal = tonumber(ARGV[a + 1]), failing = tonumber(ARGV[a + 2]),
    suspect_ms = tonumber(ARGV[a + 3]), outage_ms = tonumber(ARGV[a + 4])}
end

-- The sender of a class: its own hash and its credential's, each with its hold and its runs.
local function read_sender(credential_key)
  local runs = call('HMGET', credential_key, 'refused_run', 'failing_run')
  return {class = read_hold(CLASS), credential = read_hold(credential_key), refused = tonumber(runs[1] or 0),
    failing = tonumber(runs[2] or 0), terminal = tonumber(call('HGET', CLASS, 'terminal_run') or 0)}
end

local function release(hold, cause)
  if hold.cause and hold.probe_ms > 0 and (not cause or hold.cause == cause) then lift_hold(hold) end
end

local function hear(sender, signal, now, trips)
  if signal == CLEAN then
    sender.refused, sender.failing, sender.terminal = 0, 0, 0
    release(sender.class)
    release(sender.credential)
  elseif signal == FAILING then
    sender.failing = sender.failing + 1
    if sender.failing >= trips.failing and sender.credential.cause ~= 'outage' then
      extend_hold(sender.credential, now, 'outage', trips.outage_ms, trips.outage_ms)
    end
  elseif signal ~= 0 then
    sender.failing = 0
    release(sender.credential, 'outage')
  end
  if signal == REFUSED then
    sender.refused = sender.refused + 1
    if sender.refused >= trips.refused then
      extend_hold(sender.credential, now, 'suspect', trips.suspect_ms, trips.suspect_ms)
    end
  elseif signal == TERMINAL then
    sender.terminal = sender.terminal + 1
    if sender.terminal >= trips.terminal then
      extend_hold(sender.class, now, 'suspect', trips.suspect_ms, trips.suspect_ms)
    end
  end
end

local function write_sender(sender)
  call('HSET', sender.credential.key, 'refused_run', sender.refused, 'failing_run', sender.failing)
  call('HSET', CLASS, 'terminal_run', sender.terminal)
end
