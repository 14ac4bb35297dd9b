-- Holds a class outside its send windows, or lifts that hold where it may send again.
-- Refuses: nothing; a window that a person opened stays open until it would have opened by itself.
-- ARGV: delay_ms until the window opens (0 = it is open).
-- Answers: ok now
-- Called by: the worker when a window closes and when it opens. A repeat changes nothing.
-- parts: hold
local now = now_ms()
local hold, delay_ms = read_hold(CLASS), tonumber(ARGV[1])
if delay_ms > 0 and now >= tonumber(call('HGET', CLASS, 'window_open_until') or 0) then
  extend_hold(hold, now, 'window', delay_ms, 0)
elseif delay_ms == 0 and hold.cause == 'window' then
  lift_hold(hold, now)
  wake()
end
return {'ok', now}
