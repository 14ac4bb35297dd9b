-- Moves due jobs from queued and pending into in_flight, as many as slots and every budget allow.
-- Refuses: a held class or budget (but for a probe); a job whose tokens are not there; limits not declared.
-- ARGV: nonce, max_jobs, lease_ms, lookahead_ms, solo_lapses, count_ttl_s, job_prefix, body_prefix, spec (JSON);
--   KEYS after the class's 13: claimed, then per budget its hash, its quotas, the in_flight of its spenders.
-- Answers: ok now next_ms probe_cause probe_ms deadline {job}... · wait ms term · empty next_ms · undeclared
-- Called by: the worker's loop; the same nonce gives those of its batch whose lease still stands.
-- parts: record hold budget share quota gate claimed heads expire repeat spend
local now, now_us = now_ms()
local max_jobs, lease_ms, lookahead_ms, solo_after = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local again, spec = repeated(ARGV[1], now, ARGV[7]), cjson.decode(ARGV[9])
if again then return hand_out({'ok', now, 0, again.cause, again.probe_ms, again.deadline}, again, ARGV[8]) end
local budgets = read_budgets(spec, 15, now, now_us)
if not budgets then return {'undeclared'} end

local shut, probes = silence(budgets, now)
local room, full = room_of(budgets, now)
room, shut = math.min(room, max_jobs), shut or full
if not shut and #probes > 0 then room = 1 end
local wanted = shut and max_jobs or math.min(room, affordable(budgets, lookahead_ms))
local heads = read_records(due_heads(now, wanted, budgets[1].credit, spec.retries), ARGV[7])
local found, gone = #heads, 0
heads, gone = expire_heads(heads, now, ARGV[7], ARGV[8], ARGV[6])
if shut then return gone > 0 and {'empty', 0} or shut end

local taken, wait_ms, term, bound, deadline = {}, 0, nil, nil, now + lease_ms
for _, job in ipairs(heads) do
  local h = job.h
  local cost, solo = h and h.cost or 1, h and h.lapses >= solo_after
  local fits, quota_ms = fits_quotas(budgets, cost)
  wait_ms, term, bound = pace_wait(budgets, cost)
  if not fits then wait_ms, term, bound = quota_ms, 'quota', nil end
  if solo and #taken > 0 or wait_ms > (#taken > 0 and lookahead_ms or 0) then break end
  for _, budget in ipairs(budgets) do take_tokens(budget, cost) end
  job.offset_ms, wait_ms, bound = math.ceil(wait_ms), 0, nil
  deadline = math.max(deadline, (h and h.last_settled or 0) + 1)
  taken[#taken + 1] = job
  if solo then break end
end
write_spending(budgets, taken, now, bound, wait_ms, spec)
if #taken == 0 and wait_ms > 0 then return {'wait', math.ceil(wait_ms), term} end
if #taken == 0 then return {'empty', gone > 0 and 0 or next_due(now)} end
drop_heads(heads, #taken)
local probe = probes[1] or {cause = '', probe_ms = 0}
lease(taken, deadline, ARGV[1], lease_ms, probe)
for _, hold in ipairs(probes) do
  extend_hold(hold, now, hold.cause, hold.probe_ms, hold.probe_ms)
  call('HSET', hold.key, 'probe_out_until', string.format('%.0f', deadline))
end
if found >= room then wake() end
local next_ms = wait_ms > 0 and math.ceil(wait_ms) or found < wanted and next_due(now) or 0
return hand_out({'ok', now, next_ms, probe.cause, probe.probe_ms, deadline}, taken, ARGV[8])
