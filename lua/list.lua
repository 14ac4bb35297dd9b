-- Reads a page of the jobs in a state, oldest first, behind a cursor of (score, key).
-- Refuses: nothing; writes nothing.
-- ARGV: state, score, key ('' = from the start of that score), max_jobs, job_prefix.
-- Answers: ok now {key score record}...
-- Called by: the API; a page is bounded, and entries that leave meanwhile do not shift it.
local now = now_ms()
local index, score, after, max = KEYS[tonumber(ARGV[1])], ARGV[2], ARGV[3], tonumber(ARGV[4])
local answer = {'ok', now}
if max < 1 then return answer end

-- By bytes, as the index orders them: Lua's own comparison follows the locale of the server.
local function is_behind(key)
  for i = 1, math.min(#key, #after) do
    local a, b = key:byte(i), after:byte(i)
    if a ~= b then return a > b end
  end
  return #key > #after
end

-- The first rank behind the cursor, by halving those that share its score: a whole campaign may be due at once.
local from, to = call('ZCOUNT', index, '-inf', '(' .. score), call('ZCOUNT', index, '-inf', score)
while from < to do
  local middle = math.floor((from + to) / 2)
  if is_behind(call('ZRANGE', index, middle, middle)[1]) then to = middle else from = middle + 1 end
end

local page, names = call('ZRANGE', index, from, from + max - 1, 'WITHSCORES'), {}
if #page == 0 then return answer end
for i = 1, #page, 2 do names[#names + 1] = ARGV[5] .. page[i] end
for i, record in ipairs(call('MGET', unpack(names))) do
  local a = #answer
  answer[a + 1], answer[a + 2], answer[a + 3] = page[i * 2 - 1], page[i * 2], record or ''
end
return answer
