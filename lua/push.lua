-- Moves new jobs into queued: record first, then the index; a key that exists is never overwritten.
-- Refuses: an unknown or moving class, a full one (all or nothing), and per job what would break a record.
-- ARGV: {key, at_ms (0 = now), expires_at_ms (0 = never), cost, campaign, fingerprint ('' = SHA-1), document}...;
--   KEYS after the class's 13: a record key per job, then a body key per job.
-- Answers: ok, now, {created '' | duplicate state | conflict state | invalid field}... · unknown_class · moving · full waiting
-- Called by: producers in any language; what stands here is their contract.
-- parts: record find fault
local PACKED_BYTES = 4096
local function from_hex(hex) return string.char(tonumber(hex, 16)) end
local now, now_us = now_ms()
local n, jobs, fresh, words, seen, simple, index, due = #ARGV / 7, {}, {}, {}, {}, true, {}, false
local class = call('HMGET', CLASS, 'declared', 'max_waiting', 'moving')
if not class[1] or class[3] then return {class[1] and 'moving' or 'unknown_class'} end
local waiting, max = call('ZCARD', KEYS[QUEUED]) + call('ZCARD', KEYS[PENDING]), tonumber(class[2] or 0)
if max > 0 and waiting + n > max then return {'full', waiting} end
if n == 0 then return {'ok', now} end
local nonce = redis.sha1hex(string.format('%.0f', now_us) .. ARGV[1]):sub(1, 12):gsub('..', from_hex)

for i = 1, n do
  local a = (i - 1) * 7
  local key, document, campaign = ARGV[a + 1], ARGV[a + 7], ARGV[a + 5]
  local at, expires, cost = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local bad = fault(key, at, expires, cost, campaign)
  simple, seen[key] = simple and not bad and not seen[key], true
  local fingerprint = ((ARGV[a + 6] ~= '' and ARGV[a + 6] or redis.sha1hex(document)) .. ('0'):rep(16)):sub(1, 16)
  local body = #document > PACKED_BYTES
  jobs[i] = {key = key, bad = bad, at = math.max(at or 0, now), fingerprint = fingerprint, body = body and document}
  if not bad then
    jobs[i].record = struct.pack(HEADER, VERSION, body and BODY or 0, nonce .. struct.pack('>H', i), fingerprint, 0, 0, 0, 0,
      0, cost, 0, 0, expires, now, 0, 0, 0, #campaign, body and 0 or #document) .. campaign .. (body and '' or document)
    fresh[#fresh + 1], fresh[#fresh + 2] = KEYS[13 + i], jobs[i].record
  end
end
local all_new = simple and n > 0 and call('MSETNX', unpack(fresh)) == 1
for i, job in ipairs(jobs) do
  if job.bad then
    words[i * 2 - 1], words[i * 2] = 'invalid', job.bad
  elseif all_new or call('SET', KEYS[13 + i], job.record, 'NX') then
    words[i * 2 - 1], words[i * 2] = 'created', ''
    if job.body then call('SET', KEYS[13 + n + i], job.body) end
    index[#index + 1], index[#index + 2] = job.at, job.key
    due = due or job.at <= now
  else
    local old = read(call('GET', KEYS[13 + i]))
    words[i * 2 - 1] = old and old.fingerprint == job.fingerprint and 'duplicate' or 'conflict'
    words[i * 2] = STATES[state_of(job.key) or QUEUED]
  end
end
if #index > 0 then call('ZADD', KEYS[QUEUED], unpack(index)) end
if due then wake() end
return {'ok', now, unpack(words)}
