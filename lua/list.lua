-- Reads a page of the jobs in a state, oldest first, behind a cursor of (score, key).
-- Refuses: nothing; writes nothing.
-- ARGV: state, score, key ('' = from the start of that score), max_jobs, job_prefix.
-- Answers: ok now {key score record}...
-- Called by: the API; a page is bounded, and entries that leave meanwhile do not shift it.
local now = now_ms()
local index, score, after, max = KEYS[tonumber(ARGV[1])], ARGV[2], ARGV[3], tonumber(ARGV[4])
local keys, scores, offset, answer = {}, {}, 0, {'ok', now}
while #keys < max and offset < 4096 do
  local page = call('ZRANGEBYSCORE', index, score, '+inf', 'WITHSCORES', 'LIMIT', offset, max)
  for i = 1, #page, 2 do
    local passed = tonumber(page[i + 1]) == tonumber(score) and page[i] <= after
    if not passed and #keys < max then keys[#keys + 1], scores[#scores + 1] = page[i], page[i + 1] end
  end
  if #page < max * 2 then break end
  offset = offset + max
end
if #keys == 0 then return answer end
local names = {}
for i, key in ipairs(keys) do names[i] = ARGV[5] .. key end
for i, record in ipairs(call('MGET', unpack(names))) do
  local a = #answer
  answer[a + 1], answer[a + 2], answer[a + 3] = keys[i], scores[i], record or ''
end
return answer
