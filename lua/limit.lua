-- Sets the limits of a budget by a person's hand, until that is taken back: they stand against the configuration.
-- Refuses: a budget that was never declared.
-- ARGV: by ('' takes it back: these limits are the configuration's), limits (JSON); KEYS after the class's 13: the budget,
--   its decisions.
-- Answers: ok now · undeclared
-- Called by: operators. A repeat sets the same again; no change grants a burst.
-- parts: budget limits
local now, now_us = now_ms()
local key, limits, by = KEYS[14], cjson.decode(ARGV[2]), ARGV[1]
local was = call('HMGET', key, 'rate_per_s', 'burst', 'pace_per_s')
if not was[1] then return {'undeclared'} end
write_limits(key, now_us, limits)
if by == '' then call('HDEL', key, 'limits_by') else call('HSET', key, 'limits_by', by) end
call('XADD', KEYS[15], 'MAXLEN', '~', 1000, '*', 'from_per_s', was[3], 'to_per_s', call('HGET', key, 'pace_per_s'), 'burst',
  call('HGET', key, 'pace_burst'), 'cause', string.format('limits set to %s/s, burst %s by %s', tostring(limits.rate_per_s),
    tostring(limits.burst), by == '' and 'the configuration' or by))
wake()
return {'ok', now}
