-- Reads a budget: what is declared, what is in force, what was counted, what its quotas have left.
-- Refuses: nothing; writes nothing.
-- ARGV: quotas (JSON); KEYS after the class's 13: the budget, its quotas.
-- Answers: ok now tokens {used of each quota} {field value}... · undeclared
-- Called by: the law, the API and the metrics.
-- parts: budget quota
local now, now_us = now_ms()
local budget, used = read_budget(KEYS[14], now_us), {}
if not budget then return {'undeclared'} end
for i, spec in ipairs(cjson.decode(ARGV[1])) do used[i] = read_quota(KEYS[14 + i], spec, now).used end
return {'ok', now, string.format('%.3f', budget.tokens), used, unpack(call('HGETALL', KEYS[14]))}
