-- A quota counts what was taken in slots: {limit, slot_ms, slots, began_ms, turns_in_ms}. A trailing window is the last
-- `slots` slots and the one under way, so that no window of that length ever holds more; a vendor's own day is the
-- one slot that began at `began_ms`.
local function slot_of(spec, at) return spec[4] > 0 and spec[4] or math.floor(at / spec[2]) end

local function read_quota(key, spec, now)
  local label, used, oldest = slot_of(spec, now), 0, math.huge
  local f, gone = call('HGETALL', key), {}
  for i = 1, #f, 2 do
    local slot, count = tonumber(f[i]), tonumber(f[i + 1])
    if slot >= label - spec[3] then
      used = used + count
      if count > 0 then oldest = math.min(oldest, slot) end
    else
      gone[#gone + 1] = f[i]
    end
  end
  local wait_ms = spec[4] > 0 and spec[5] or (oldest + spec[3] + 1) * spec[2] - now
  return {key = key, label = string.format('%.0f', label), left = spec[1] - used, used = used, limit = spec[1],
    wait_ms = wait_ms, gone = gone, keep_ms = spec[4] > 0 and spec[5] + 86400000 or spec[2] * (spec[3] + 2)}
end

-- How many of cost 1 the quotas of a budget leave, and the one that leaves least.
local function quota_room(budget)
  local least
  for _, quota in ipairs(budget.quotas) do
    if not least or quota.left < least.left then least = quota end
  end
  return least and math.max(0, least.left) or math.huge, least
end

local function forget_slots(budget)
  for _, quota in ipairs(budget.quotas) do
    if #quota.gone > 0 then call('HDEL', quota.key, unpack(quota.gone)) end
  end
end

-- Tokens that were taken at `at` and not used go back where they were taken from.
local function give_back(pace, cost, at, now_us)
  local f = call('HMGET', pace.key, 'arrival_us', 'pace_per_s')
  if not f[2] then return end
  local arrival = math.max(tonumber(f[1] or 0), now_us) - cost * 1000000 / tonumber(f[2])
  call('HSET', pace.key, 'arrival_us', string.format('%.0f', arrival))
  call('HINCRBY', pace.key, 'taken', -cost)
  for i, key in ipairs(pace.quota_keys) do
    call('HINCRBY', key, string.format('%.0f', slot_of(pace.quotas[i], at)), -cost)
  end
end
