-- What stands between a class and its next job: holds first, then tokens, then jobs in flight. Shared by
-- whatever asks "may it go?" and "why not?", so that both always agree.
-- The holds on these hashes: how long to wait and why, or the holds that a probe goes under.
local function holds_of(keys, now)
  local probes = {}
  for _, key in ipairs(keys) do
    local hold = read_hold(key)
    if hold.cause and hold.ends == -1 then return {ms = -1, term = 'hold:' .. hold.cause} end
    if hold.cause and hold.ends > now then return {ms = hold.ends - now, term = 'hold:' .. hold.cause} end
    if in_force(hold, now) then probes[#probes + 1] = hold end
  end
  return nil, probes
end

-- How many more may be in flight under a budget: its limit less the unexpired leases of all its spenders.
local function room_in_flight(budget, in_flight_keys, now)
  if budget.max_in_flight == 0 then return math.huge end
  local leases = 0
  for _, key in ipairs(in_flight_keys) do leases = leases + call('ZCOUNT', key, now, '+inf') end
  return math.max(0, budget.max_in_flight - leases)
end
