-- Moves due jobs from queued and pending into in_flight, as many as slots and every budget allow.
-- Refuses: a held class or budget (but for a probe); a job whose tokens are not there; limits not declared.
-- ARGV: nonce, max_jobs, lease_ms, lookahead_ms, solo_lapses, count_ttl_s, job_prefix, body_prefix, {spenders} per budget;
--   KEYS after the class's 13: claimed, then per budget its hash and the in_flight of its spenders.
-- Answers: ok now next_ms probe_cause probe_ms deadline {job}... · wait ms term · empty next_ms · undeclared
-- Called by: the worker's loop; the same nonce gives those of its batch whose lease still stands.
-- parts: record hold budget gate claimed heads expire repeat
local now, now_us = now_ms()
local max_jobs, lease_ms, lookahead_ms, solo_after = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local again = repeated(ARGV[1], now, ARGV[7])
if again then return hand_out({'ok', now, 0, again.cause, again.probe_ms, again.deadline}, again, ARGV[8]) end

local held, budgets, at, room = {CLASS}, {}, 15, max_jobs
for i = 9, #ARGV do
  local budget, spenders = read_budget(KEYS[at], now_us), {}
  if not budget then return {'undeclared'} end
  for j = 1, tonumber(ARGV[i]) do spenders[j] = KEYS[at + j] end
  room = math.min(room, room_in_flight(budget, spenders, now))
  budgets[#budgets + 1], held[#held + 1] = budget, KEYS[at]
  at = at + 1 + #spenders
end
local silent, probes = holds_of(held, now)
if silent then return {'wait', silent.ms, silent.term} end
if room < 1 then return {'wait', -1, 'max_in_flight'} end
if #probes > 0 then room = 1 end

local heads = read_records(due_heads(now, room), ARGV[7])
local taken, gone, wait_ms, deadline = {}, {}, 0, now + lease_ms
for _, job in ipairs(heads) do
  local h = job.h
  if h and h.expires_at > 0 and h.expires_at <= now then
    gone[#gone + 1] = job
  else
    local cost, solo = h and h.cost or 1, h and h.lapses >= solo_after
    for _, budget in ipairs(budgets) do wait_ms = math.max(wait_ms, token_wait_ms(budget, cost)) end
    if solo and #taken > 0 or wait_ms > (#taken > 0 and lookahead_ms or 0) then break end
    for _, budget in ipairs(budgets) do take_tokens(budget, cost) end
    job.offset_ms, wait_ms = math.ceil(wait_ms), 0
    deadline = math.max(deadline, (h and h.last_settled or 0) + 1)
    taken[#taken + 1] = job
    if solo then break end
  end
end
drop_heads(heads, #taken + #gone)
for _, job in ipairs(gone) do expire(job, read(job.record), now, ARGV[7], ARGV[8], ARGV[6]) end
if #taken == 0 and wait_ms > 0 then return {'wait', math.ceil(wait_ms), 'rate'} end
if #taken == 0 then return {'empty', #gone > 0 and 0 or next_due(now)} end
local probe = probes[1] or {cause = '', probe_ms = 0}
lease(taken, deadline, ARGV[1], lease_ms, probe)
for _, budget in ipairs(budgets) do write_budget(budget) end
for _, hold in ipairs(probes) do extend_hold(hold, now, hold.cause, hold.probe_ms, hold.probe_ms) end
if #heads >= room then wake() end
local next_ms = wait_ms > 0 and math.ceil(wait_ms) or #heads < room and next_due(now) or 0
return hand_out({'ok', now, next_ms, probe.cause, probe.probe_ms, deadline}, taken, ARGV[8])
