-- Puts a person's hold on a class or budget, or lifts whatever hold is there.
-- Refuses: nothing; a person may lift any hold.
-- ARGV: cause ('' lifts), delay_ms (-1 = until lifted), by; KEYS after the class's 13: the hash that is held.
-- Answers: ok now
-- Called by: pause and resume. A repeat sets the same again.
-- parts: hold
local now = now_ms()
local hold, delay_ms = read_hold(KEYS[14]), tonumber(ARGV[2])
local was, until_then = hold.cause, hold.ends
if was == 'window' then call('HSET', hold.key, 'window_open_until', string.format('%.0f', hold.ends)) end
lift_hold(hold, now)
if ARGV[1] == '' then
  wake()
  return {'ok', now}
end
local ends = delay_ms == -1 and -1 or now + delay_ms
-- A timed pause over a longer automatic hold lasts as long as that would have: who wants it gone lifts it.
if was and was ~= 'pause' and ends ~= -1 then ends = math.max(ends, until_then) end
call('HSET', hold.key, 'hold_cause', ARGV[1], 'hold_until', string.format('%.0f', ends), 'hold_probe_ms', 0,
  'hold_by', ARGV[3], 'hold_since', string.format('%.0f', now))
return {'ok', now}
