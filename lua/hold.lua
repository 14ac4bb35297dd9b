-- Puts a person's hold on a class or budget, or lifts whatever hold is there.
-- Refuses: nothing; a person may lift any hold.
-- ARGV: cause ('' lifts), delay_ms (-1 = until lifted), by; KEYS after the class's 13: the hash that is held.
-- Answers: ok now
-- Called by: pause and resume. A repeat sets the same again.
-- parts: hold
local now = now_ms()
local hold, delay_ms = {key = KEYS[14]}, tonumber(ARGV[2])
lift_hold(hold)
if ARGV[1] == '' then
  wake()
  return {'ok', now}
end
local ends = delay_ms == -1 and -1 or now + delay_ms
call('HSET', hold.key, 'hold_cause', ARGV[1], 'hold_until', string.format('%.0f', ends), 'hold_probe_ms', 0,
  'hold_by', ARGV[3], 'hold_since', string.format('%.0f', now))
return {'ok', now}
