-- The limits of a budget, from the configuration or a person: a ceiling for its pace, and where an untried one
-- starts. A higher ceiling raises no pace that adapts: the law does, as fast as the remote side lets it.
local function write_limits(key, now_us, limits)
  local f = call('HMGET', key, 'rate_per_s', 'burst', 'pace_per_s', 'pace_burst')
  local ceiling, pace = tonumber(f[1]), tonumber(f[3])
  local function under(pace_of, new, first)
    if not pace_of then return first end
    return limits.adapts and math.min(pace_of, new) or new
  end
  reshape(key, now_us, under(pace, limits.rate_per_s, limits.first_per_s),
    under(tonumber(f[4]), limits.burst, limits.first_burst))
  call('HSET', key, 'rate_per_s', limits.rate_per_s, 'burst', limits.burst, 'floor_per_s', limits.floor_per_s,
    'max_in_flight', limits.max_in_flight)
  if ceiling ~= limits.rate_per_s or tonumber(f[2]) ~= limits.burst then call('HINCRBY', key, 'version', 1) end
end
