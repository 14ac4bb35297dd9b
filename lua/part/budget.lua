-- A budget is a GCRA in µs: `arrival` is when the bucket will be full again, `burst` how far ahead it may lie.
local function read_budget(key, now_us)
  local f = call('HMGET', key, 'rate_per_s', 'burst', 'max_in_flight', 'arrival_us', 'hold_until')
  local rate, burst = tonumber(f[1]), tonumber(f[2])
  if not rate then return nil end
  local budget = {key = key, rate = rate, burst = burst, max_in_flight = tonumber(f[3] or 0)}
  -- A hold releases at the pace, not with a burst: one token at its end, the others as they come.
  local released = tonumber(f[5] or 0) * 1000 + (burst - 1) * 1000000 / rate
  budget.arrival = math.max(tonumber(f[4] or 0), now_us, released)
  budget.tokens = burst - (budget.arrival - now_us) * rate / 1000000
  return budget
end

-- The first token arrives this many ms from now for a job of that cost; one dearer than the burst goes when
-- the bucket is full and leaves it in debt, so it never blocks the head for ever.
local function token_wait_ms(budget, cost)
  return math.max(0, (math.min(cost, budget.burst) - budget.tokens) * 1000 / budget.rate)
end

local function take_tokens(budget, cost)
  budget.tokens = budget.tokens - cost
  budget.arrival = budget.arrival + cost * 1000000 / budget.rate
end

local function write_budget(budget)
  call('HSET', budget.key, 'arrival_us', string.format('%.0f', budget.arrival))
end

local function give_back(key, cost, now_us)
  local budget = read_budget(key, now_us)
  if not budget then return end
  take_tokens(budget, -cost)
  write_budget(budget)
end
