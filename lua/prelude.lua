-- Shared by every script; costs what it weighs, so it stays lean.
-- KEYS[1..9] are the indexes of a class in the order of the states, so KEYS[state] is where that state lives.
local QUEUED, PENDING, IN_FLIGHT, SUBMITTED, FAILED = 1, 2, 3, 4, 5
local DEFERRED, UNCONFIRMED, EXPIRED, CANCELLED = 6, 7, 8, 9
local STATES = {'queued', 'pending', 'in_flight', 'submitted', 'failed', 'deferred', 'unconfirmed', 'expired', 'cancelled'}
local CLASS, PENDING_SINCE, WAKE, MINUTE = KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local call = redis.call

-- Redis's clock in ms; read once per call, because it moves on inside a script.
local function now_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
end

-- One marker wakes one idle worker; a second would wake another for nothing.
local function wake()
  if call('LLEN', WAKE) == 0 then call('RPUSH', WAKE, '1') end
end
