-- Writes what the configuration says of a class and its budgets, leaving holds, runs and arrival times alone.
-- Refuses: nothing.
-- ARGV: max_waiting, {rate_per_s, burst, max_in_flight}...; KEYS after the class's 13: the budgets.
-- Answers: ok now
-- Called by: every worker and API server when it starts, and again when a claim or push finds nothing declared.
local now = now_ms()
call('HSET', CLASS, 'declared', 1, 'max_waiting', ARGV[1])
for b = 1, (#ARGV - 1) / 3 do
  call('HSET', KEYS[13 + b], 'rate_per_s', ARGV[b * 3 - 1], 'burst', ARGV[b * 3], 'max_in_flight', ARGV[b * 3 + 1])
end
return {'ok', now}
