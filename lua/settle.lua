-- Moves jobs out of in_flight to where their decisions say, and feeds what their ends say of the sender and its pace.
-- Refuses: a lost lease (stale), another birth or no record (gone), a repeat (already); a refusal that a suspect
--   hold overtook (held: Rust decides again). A birth of zeros says that Rust could not read the record: it is parked.
-- ARGV: count_ttl_s, spec (JSON of budgets and trips), {key, order, count, history}...;
--   KEYS after the class's 13: per budget (credential first) its hash and quotas, a record key per job, a body key per job.
-- Answers: ok now {moved state | late state | twice state | already '' | stale '' | gone '' | parked state | held cause}...
-- Called by: the worker; an Accepted whose lease was lost is never thrown away.
-- parts: record find hold signal quota heard order moves live late
local now, now_us = now_ms()
local spec, n = cjson.decode(ARGV[2]), (#ARGV - 2) / 4
local paces, at = read_paces(spec, 14)
local keys, record_keys, budget_keys, words = {}, {}, {}, {}
for i = 1, n do keys[i], record_keys[i] = ARGV[i * 4 - 1], KEYS[at - 1 + i] end
for i, pace in ipairs(paces) do budget_keys[i] = pace.key end
local leases, records = call('ZMSCORE', KEYS[IN_FLIGHT], unpack(keys)), call('MGET', unpack(record_keys))
local sender, moves = read_sender(KEYS[14], spec.trips), new_moves(now)
local batch = {now = now, now6 = struct.pack('>I6', now), sender = sender, moves = moves, paces = paces,
  budget_keys = budget_keys}

for i = 1, n do
  local order, code, history, record = ARGV[i * 4], ARGV[1 + i * 4], ARGV[2 + i * 4], records[i]
  local word, extra, signal, claimed_at = nil, '', 0, 0
  local deadline, birth = struct.unpack(FENCE, order)
  local mine, known = tonumber(leases[i] or 0) == deadline, is_readable(record)
  if mine and (not known or birth == UNREAD) then
    move(moves, keys[i], DEFERRED)
    word, extra = 'parked', STATES[DEFERRED]
  elseif not known or record:sub(3, 10) ~= birth then
    word = 'gone'
  elseif mine then
    word, extra = live(batch, i, keys[i], order, record, code, history)
  elseif record:sub(63, 68) == order:sub(1, 6) then
    word = 'already'
  else
    word, extra, signal, claimed_at = late(moves, i, keys[i], record, order, code, history)
    hear(sender, signal or 0, now, claimed_at or 0)
    if signal == CLEAN then hear_accepted(paces, cost_of(record), now - claimed_at) end
  end
  if word ~= 'moved' and word ~= 'held' then count(moves, '|' .. word .. '|' .. extra) end
  words[i * 2 - 1], words[i * 2] = word, extra
end
carry_out(moves, record_keys, at - 1 + n, tonumber(ARGV[1]))
write_sender(sender)
write_paces(paces, now_us)
return {'ok', now, unpack(words)}
