-- Gathers what a batch does and writes it in a few variadic calls.
local function new_moves(now)
  return {now = now, leave = {}, into = {}, records = {}, bodies = {}, counts = {}, since = {}, over = {}}
end

local function move(moves, i, key, target, score)
  moves.leave[#moves.leave + 1] = key
  local into = moves.into[target] or {}
  into[#into + 1], into[#into + 2] = string.format('%.0f', score), key
  moves.into[target] = into
  if target == PENDING then
    moves.since[#moves.since + 1], moves.since[#moves.since + 2] = moves.now, key
  elseif target ~= QUEUED then
    moves.over[#moves.over + 1] = key
  end
end

-- What a job leaves behind: a receipt where it is over for good, all of it where a person may want it back.
local function store(moves, i, record, h, target, history)
  if target == SUBMITTED or target == EXPIRED or target == CANCELLED then
    if has(h.flags, BODY) then moves.bodies[#moves.bodies + 1] = i end
    moves.records[i] = receipt(record, h, history:match('[^\n]*\n$') or '')
  else
    moves.records[i] = rewrite(record, h, history)
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
