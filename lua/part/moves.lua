-- Gathers what a batch does and writes it in a few variadic calls.
local function new_moves(now)
  return {now = now, at = string.format('%.0f', now), leave = {}, into = {}, records = {}, bodies = {}, counts = {}, since = {}, over = {}}
end

-- `score` is a number, or nothing for now, which is formatted once and not for each job.
local function move(moves, key, target, score)
  moves.leave[#moves.leave + 1] = key
  local into = moves.into[target] or {}
  into[#into + 1], into[#into + 2] = score or moves.at, key
  moves.into[target] = into
  if target == PENDING then
    moves.since[#moves.since + 1], moves.since[#moves.since + 2] = moves.at, key
  elseif target ~= QUEUED then
    moves.over[#moves.over + 1] = key
  end
end

local function count(moves, code)
  moves.counts[code] = (moves.counts[code] or 0) + 1
end

local function carry_out(moves, record_keys, body_offset, ttl_s)
  local pairs_of, bodies = {}, {}
  for i, record in pairs(moves.records) do pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = record_keys[i], record end
  for j, i in ipairs(moves.bodies) do bodies[j] = KEYS[body_offset + i] end
  if #pairs_of > 0 then call('MSET', unpack(pairs_of)) end
  if #bodies > 0 then call('UNLINK', unpack(bodies)) end
  if #moves.leave > 0 then call('ZREM', KEYS[IN_FLIGHT], unpack(moves.leave)) end
  for target, into in pairs(moves.into) do call('ZADD', KEYS[target], unpack(into)) end
  if #moves.since > 0 then call('ZADD', PENDING_SINCE, 'NX', unpack(moves.since)) end
  if #moves.over > 0 then call('ZREM', PENDING_SINCE, unpack(moves.over)) end
  for code, n in pairs(moves.counts) do call('HINCRBY', MINUTE, code, n) end
  call('EXPIRE', MINUTE, ttl_s)
end
