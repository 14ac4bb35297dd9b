-- How claim spends from the budgets of its class, and what it leaves for whoever asks next.
-- No more heads are read than tokens could pay for, and one, which tells how long the next has to wait.
local function affordable(budgets, lookahead_ms)
  local most = math.huge
  for _, budget in ipairs(budgets) do
    most = math.min(most, budget.tokens - budget.reserved + budget.growth * lookahead_ms / 1000)
    local own = budget.own
    if own and own.is_shed then most = math.min(most, own.level + own.rate * lookahead_ms / 1000) end
  end
  return math.max(0, math.floor(most)) + 1
end

-- A job dearer than a whole quota goes while nothing of that quota is used.
local function fits_quotas(budgets, cost)
  for _, budget in ipairs(budgets) do
    for _, quota in ipairs(budget.quotas) do
      if quota.left < math.min(cost, quota.limit) then return false, quota.wait_ms end
    end
  end
  return true
end

-- `bound` is the budget whose tokens a due job waits for, for `wait_ms`: its pace is what binds, and classes that
-- are shed earlier see for a little longer than that that this one wants what there is.
local function write_spending(budgets, taken, now, bound, wait_ms, spec)
  for i, budget in ipairs(budgets) do
    local own, fields, last = budget.own, {}, taken[#taken]
    local function set(field, number) fields[#fields + 1], fields[#fields + 2] = field, string.format('%.0f', number) end
    if budget == bound then set('bound_at_ms', now) end
    if own and budget == bound then set('wants:' .. own.name, now + wait_ms + spec.reserve.wants_ms) end
    if own and budget ~= bound and own.wants_ms > 0 then set('wants:' .. own.name, 0) end
    if own and last then set('reserve:' .. own.name, budget.now_us + (own.cap - own.level) * 1000000 / own.rate) end
    if i == 1 and last and last.credit ~= budget.credit then
      fields[#fields + 1], fields[#fields + 2] = 'retry_credit', last.credit
    end
    if last then write_budget(budget, fields) elseif #fields > 0 then call('HSET', budget.key, unpack(fields)) end
    forget_slots(budget)
  end
end
