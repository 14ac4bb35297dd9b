-- A budget is a GCRA in µs: `arrival` is when the bucket will be full again, `burst` how far ahead it may lie.
-- `pace_per_s` and `pace_burst` are in force, at most the ceiling that `rate_per_s` and `burst` declare.
local function read_budget(key, now_us)
  local f = call('HMGET', key, 'pace_per_s', 'pace_burst', 'max_in_flight', 'arrival_us', 'hold_until', 'released_ms',
    'retry_credit')
  local rate, burst = tonumber(f[1]), tonumber(f[2])
  if not rate then return nil end
  local budget = {key = key, rate = rate, burst = burst, full = burst, growth = rate, reserved = 0, taken = 0,
    max_in_flight = tonumber(f[3] or 0), credit = tonumber(f[7] or 0), now_us = now_us, quotas = {}}
  -- A hold releases at the pace, not with a burst: one token at its end, the others as they come.
  local released = math.max(tonumber(f[5] or 0), tonumber(f[6] or 0)) * 1000 + (burst - 1) * 1000000 / rate
  budget.arrival = math.max(tonumber(f[4] or 0), now_us, released)
  budget.tokens = burst - (budget.arrival - now_us) * rate / 1000000
  return budget
end

-- The bucket at another pace: the tokens stay those there were, so that no change grants a burst.
local function reshape(key, now_us, rate, burst)
  local f = call('HMGET', key, 'pace_per_s', 'pace_burst', 'arrival_us')
  if f[1] then
    local ahead = math.max(0, tonumber(f[3] or 0) - now_us) * tonumber(f[1]) / 1000000
    local tokens = math.min(burst, tonumber(f[2]) - ahead)
    call('HSET', key, 'arrival_us', string.format('%.0f', now_us + (burst - tokens) * 1000000 / rate))
  end
  call('HSET', key, 'pace_per_s', rate, 'pace_burst', burst)
end

-- How many ms from now the tokens for a job of that cost are there, and the term that binds. A job dearer than
-- the bucket goes when that is full and leaves it in debt, so it never blocks the head for ever.
-- What is missing within the rounding of a µs is not missing.
local ROUNDING = 0.000001
local function token_wait(budget, cost)
  local own = budget.own
  local ms = (math.min(cost, budget.full) - budget.tokens + budget.reserved - ROUNDING) * 1000 / budget.growth
  if not own or not own.is_shed then return math.max(0, ms), 'rate' end
  local mine = math.min((math.min(cost, own.cap) - own.level - ROUNDING) * 1000 / own.rate, own.shed_ms)
  return math.max(0, ms, mine), mine >= ms and 'shed' or 'rate'
end

local function take_tokens(budget, cost)
  budget.tokens, budget.taken = budget.tokens - cost, budget.taken + cost
  budget.arrival = budget.arrival + cost * 1000000 / budget.rate
  local own = budget.own
  -- What is beyond the reserve is lent; only a class that is shed goes into debt with its own.
  if own then own.level = own.level - (own.is_shed and cost or math.min(cost, math.max(0, own.level))) end
  for _, quota in ipairs(budget.quotas) do quota.left = quota.left - cost end
end

local function write_budget(budget, fields)
  call('HSET', budget.key, 'arrival_us', string.format('%.0f', budget.arrival), unpack(fields or {}))
  if budget.taken ~= 0 then call('HINCRBY', budget.key, 'taken', budget.taken) end
  for _, quota in ipairs(budget.taken ~= 0 and budget.quotas or {}) do
    call('HINCRBY', quota.key, quota.label, budget.taken)
    call('PEXPIRE', quota.key, quota.keep_ms)
  end
end
