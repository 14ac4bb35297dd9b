-- Writes what the configuration says of a class and its budgets, leaving holds, runs, arrival times and the limits that
-- a person set alone.
-- Refuses: nothing.
-- ARGV: max_waiting, limits (JSON, one per budget); KEYS after the class's 13: the budgets.
-- Answers: ok now
-- Called by: every worker and API server when it starts, and again when a claim or push finds nothing declared.
-- parts: budget limits
local now, now_us = now_ms()
call('HSET', CLASS, 'declared', 1, 'max_waiting', ARGV[1])
for b, limits in ipairs(cjson.decode(ARGV[2])) do
  local key = KEYS[13 + b]
  if not call('HGET', key, 'limits_by') then write_limits(key, now_us, limits) end
end
return {'ok', now}
