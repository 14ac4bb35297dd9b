-- What stands between a class and its next job: holds first, then jobs in flight, then quotas, then tokens. Shared
-- by whatever asks "may it go?" and "why not?", so that both always agree.
-- `spec` names the budgets as Rust knows them: per budget its spenders, its quotas, and how many `leases` indexes
-- follow it in KEYS. Nil where one is not declared.
local function read_budgets(spec, at, now, now_us)
  local budgets = {}
  for i, of in ipairs(spec.budgets) do
    local budget = read_budget(KEYS[at], now_us)
    if not budget then return nil end
    budgets[i], budget.hold, budget.leases = budget, read_hold(KEYS[at]), {}
    for j, quota in ipairs(of.quotas) do budget.quotas[j] = read_quota(KEYS[at + j], quota, now) end
    at = at + 1 + #of.quotas
    for j = 1, of.leases do budget.leases[j] = KEYS[at + j - 1] end
    at = at + of.leases
    read_shares(budget, of.spenders, spec.class, spec.reserve, now)
  end
  return budgets
end

-- The holds in force: how long to wait and why, or those that a probe goes under.
local function silence(budgets, now)
  local probes, holds = {}, {read_hold(CLASS)}
  for i, budget in ipairs(budgets) do holds[i + 1] = budget.hold end
  for _, hold in ipairs(holds) do
    local term = hold.cause and 'hold:' .. hold.cause
    if hold.cause and hold.ends == -1 then return {'wait', -1, term} end
    local ends = math.max(hold.ends, hold.out)
    if hold.cause and ends > now then return {'wait', ends - now, term} end
    if in_force(hold, now) then probes[#probes + 1] = hold end
  end
  return nil, probes
end

-- How many may go before tokens are asked for, and what to answer where that is none.
local function room_of(budgets, now)
  local room, answer = math.huge, nil
  for _, budget in ipairs(budgets) do
    local leases, quota, least = 0, quota_room(budget)
    for _, key in ipairs(budget.leases) do leases = leases + call('ZCOUNT', key, now, '+inf') end
    local free = budget.max_in_flight > 0 and budget.max_in_flight - leases or math.huge
    if free < 1 and not answer then answer = {'wait', -1, 'max_in_flight'} end
    if quota < 1 and not answer then answer = {'wait', least.wait_ms, 'quota'} end
    room = math.max(0, math.min(room, free, quota))
  end
  return room, answer
end

-- The longest wait for tokens of that cost, the term that binds, and the budget it binds in.
local function pace_wait(budgets, cost)
  local ms, term, bound = 0, 'rate', nil
  for _, budget in ipairs(budgets) do
    local other_ms, other_term = token_wait(budget, cost)
    if other_ms > ms then ms, term, bound = other_ms, other_term, budget end
  end
  return ms, term, bound
end
