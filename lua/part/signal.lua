-- What ends say about the sender: runs of them put holds on it, an acceptance of something sent under a hold that
-- probes releases it. The thresholds and times are the caller's.
local CLEAN, THROTTLED, FAILING, REFUSED, TERMINAL, ACCOUNT_THROTTLED, RECIPIENT_THROTTLED, ANSWERED =
  1, 2, 3, 4, 5, 6, 7, 8

-- The sender of a class: its own hash and its credential's, each with its hold and its runs.
local function read_sender(credential_key, trips)
  local runs = call('HMGET', credential_key, 'refused_run', 'failing_run', 'recipients', 'recipients_since')
  return {class = read_hold(CLASS), credential = read_hold(credential_key), refused = tonumber(runs[1] or 0),
    failing = tonumber(runs[2] or 0), terminal = tonumber(call('HGET', CLASS, 'terminal_run') or 0), trips = trips,
    recipients = runs[3] or '', recipients_since = tonumber(runs[4] or 0)}
end

local function release(hold, now, claimed_at, cause)
  if hold.cause and hold.probe_ms > 0 and claimed_at >= hold.since and (not cause or hold.cause == cause) then
    lift_hold(hold, now)
    wake()
  end
end

local function hear(sender, signal, now, claimed_at)
  local trips = sender.trips
  if signal == CLEAN then
    sender.refused, sender.failing, sender.terminal = 0, 0, 0
    release(sender.class, now, claimed_at)
    release(sender.credential, now, claimed_at)
  elseif signal == FAILING then
    sender.failing = sender.failing + 1
    if sender.failing >= trips.failing_run and sender.credential.cause ~= 'outage' then
      extend_hold(sender.credential, now, 'outage', trips.outage_ms, trips.outage_ms)
    end
  elseif signal ~= 0 then
    sender.failing = 0
    release(sender.credential, now, claimed_at, 'outage')
  end
  if signal == REFUSED then
    sender.refused = sender.refused + 1
    if sender.refused >= trips.refused_run then
      extend_hold(sender.credential, now, 'suspect', trips.suspect_ms, trips.suspect_ms)
    end
  elseif signal == TERMINAL then
    sender.terminal = sender.terminal + 1
    if sender.terminal >= trips.terminal_run then
      extend_hold(sender.class, now, 'suspect', trips.suspect_ms, trips.suspect_ms)
    end
  end
end

local function write_sender(sender)
  call('HSET', sender.credential.key, 'refused_run', sender.refused, 'failing_run', sender.failing, 'recipients',
    sender.recipients, 'recipients_since', string.format('%.0f', sender.recipients_since))
  call('HSET', CLASS, 'terminal_run', sender.terminal)
end
