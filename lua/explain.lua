-- Reads why the next job of a class, or one job, does not go now: the same gates as claim, in the same order.
-- Refuses: nothing; writes nothing.
-- ARGV: spec (JSON), key ('' = the class); KEYS after the class's 13: per budget its hash, its quotas, the in_flight
--   of its spenders, then the record of the job.
-- Answers: ok now ms (-1 = until something changes) term ('' = may go) next_due_ms state score rank · missing · undeclared
-- Called by: operators, through the API.
-- parts: record find hold budget share quota gate heads
local now, now_us = now_ms()
local budgets = read_budgets(cjson.decode(ARGV[1]), 14, now, now_us)
if not budgets then return {'undeclared'} end
local state, score, rank, cost = '', 0, -1, 1
if ARGV[2] ~= '' then
  local h, found = glance(call('GET', KEYS[#KEYS])), state_of(ARGV[2])
  if not found then return {'missing'} end
  state, score = STATES[found], tonumber(call('ZSCORE', KEYS[found], ARGV[2]))
  rank, cost = call('ZRANK', KEYS[found], ARGV[2]), h and h.cost or 1
end
local shut = silence(budgets, now)
local _, full = room_of(budgets, now)
shut = shut or full
if not shut then
  local ms, term = pace_wait(budgets, cost)
  shut = {'wait', math.ceil(ms), ms > 0 and term or ''}
end
return {'ok', now, shut[2], shut[3], next_due(now), state, score, rank}
