-- Where several classes spend from one budget each has a reserve, a bucket that fills at its share of the pace;
-- only what overflows the reserves is lent. While a class that is shed later waits for tokens of this budget and
-- for nothing else, those that are shed earlier get no more than their own reserve.
-- A spender is {name, share of the pace, place in the shed order}: the lower the place, the later it is shed.
local function reserves_of(budget, spenders, reserve)
  local caps, total = {}, 0
  for i, spender in ipairs(spenders) do
    caps[i] = math.max(reserve.least, reserve.ms * spender[2] * budget.rate / 1000)
    total = total + caps[i]
  end
  local scale, is_whole = math.min(1, budget.burst / 2 / total), true
  for i in ipairs(caps) do
    caps[i] = caps[i] * scale
    is_whole = is_whole and caps[i] >= 1
  end
  return caps, is_whole
end

-- A bucket that is not full holds less than all reserves: each has its part of what there is.
local function fit_levels(shares, tokens)
  local total = 0
  for _, share in ipairs(shares) do total = total + math.max(0, share.level) end
  local part = total > tokens and math.max(0, tokens) / total or 1
  for _, share in ipairs(shares) do share.level = math.min(share.level, share.level * part) end
end

-- Where the burst is too small to set whole tokens aside, nothing is reserved and turns are taken: a class that
-- had its share waits for one that is owed a token.
local function read_shares(budget, spenders, own_name, reserve, now)
  if #spenders < 2 then return end
  local caps, is_whole = reserves_of(budget, spenders, reserve)
  local fields, shares = {}, {}
  for i, spender in ipairs(spenders) do
    fields[i * 2 - 1], fields[i * 2] = 'reserve:' .. spender[1], 'wants:' .. spender[1]
  end
  local f = call('HMGET', budget.key, unpack(fields))
  for i, spender in ipairs(spenders) do
    local rate, cap = spender[2] * budget.rate, is_whole and caps[i] or reserve.least
    local missing = math.max(0, tonumber(f[i * 2 - 1] or 0) - budget.now_us) * rate / 1000000
    shares[i] = {name = spender[1], order = spender[3], rate = rate, cap = cap, level = cap - missing,
      wants_ms = tonumber(f[i * 2] or 0) - now, shed_ms = 0}
    if spender[1] == own_name then budget.own = shares[i] end
  end
  if is_whole then fit_levels(shares, budget.tokens) end
  local own = budget.own
  for _, other in ipairs(shares) do
    if other ~= own then
      if is_whole then
        budget.reserved, budget.full = budget.reserved + math.max(0, other.level), budget.full - other.cap
        if other.level < other.cap then budget.growth = budget.growth - other.rate end
      end
      local owed = not is_whole and own.level < 1 and other.level >= 1
      if other.wants_ms > 0 and (other.order < own.order or owed) then
        own.is_shed, own.shed_ms = true, math.max(own.shed_ms, other.wants_ms)
      end
    end
  end
end
