-- Moves jobs out of in_flight to where their decisions say, and feeds what their ends say of the sender.
-- Refuses: a lost lease (stale), another birth or no record (gone), a repeat (already); a refusal that a suspect
--   hold overtook (held: Rust decides again). A birth of zeros says that Rust could not read the record: it is parked.
-- ARGV: count_ttl_s, refused, terminal, failing, suspect_ms, outage_ms, budgets, {key, order, count, history}...;
--   KEYS after the class's 13: the budgets (credential first), a record key per job, a body key per job.
-- Answers: ok now {moved state | late state | twice state | already '' | stale '' | gone '' | parked state | held cause}...
-- Called by: the worker; an Accepted whose lease was lost is never thrown away.
-- parts: record find hold signal budget order moves late
local now, now_us = now_ms()
local trips = {refused = tonumber(ARGV[2]), terminal = tonumber(ARGV[3]), failing = tonumber(ARGV[4]),
  suspect_ms = tonumber(ARGV[5]), outage_ms = tonumber(ARGV[6])}
local nb, n = tonumber(ARGV[7]), (#ARGV - 7) / 4
local keys, record_keys = {}, {}
for i = 1, n do keys[i], record_keys[i] = ARGV[4 + i * 4], KEYS[13 + nb + i] end
local leases, records = call('ZMSCORE', KEYS[IN_FLIGHT], unpack(keys)), call('MGET', unpack(record_keys))
local sender, moves, words, refund = read_sender(KEYS[14]), new_moves(now), {}, 0

local function live(i, o, h)
  if o.signal == REFUSED and sender.credential.cause == 'suspect' and not has(o.marks, DECIDED_AGAIN) then
    return 'held', 'suspect'
  end
  hear(sender, has(o.marks, DECIDED_AGAIN) and 0 or o.signal, now, trips)
  if o.hold_on > 0 then
    local hold = o.hold_on == 1 and sender.class or o.hold_on == 3 and nb > 1 and read_hold(KEYS[15]) or sender.credential
    extend_hold(hold, now, CAUSES[o.hold_cause], o.hold_ms, o.hold_probe_ms)
  end
  if has(o.marks, REFUND) then refund = refund + h.cost end
  local target = apply(h, o, now)
  move(moves, i, keys[i], target, target <= PENDING and now + o.delay_ms or now)
  store(moves, i, records[i], h, target, ARGV[7 + i * 4])
  count(moves, o.count .. '|' .. STATES[target])
  return 'moved', STATES[target]
end

for i = 1, n do
  local o, h, word, extra = read_order(ARGV[5 + i * 4]), read(records[i]), nil, ''
  local mine = tonumber(leases[i] or 0) == o.deadline
  o.count = ARGV[6 + i * 4]
  if mine and (not h or o.birth == UNREAD) then
    move(moves, i, keys[i], DEFERRED, now)
    word, extra = 'parked', STATES[DEFERRED]
  elseif not h or h.birth ~= o.birth then
    word = 'gone'
  elseif mine then
    word, extra = live(i, o, h)
  elseif h.last_settled == o.deadline then
    word = 'already'
  else
    word, extra = late(moves, i, keys[i], records[i], h, o, ARGV[7 + i * 4])
    if word == 'late' then hear(sender, o.signal, now, trips) end
  end
  if word ~= 'moved' and word ~= 'held' then count(moves, '|' .. word .. '|' .. extra) end
  words[i * 2 - 1], words[i * 2] = word, extra
end
carry_out(moves, record_keys, 13 + nb + n, tonumber(ARGV[1]))
write_sender(sender)
for b = 1, refund > 0 and nb or 0 do give_back(KEYS[13 + b], refund, now_us) end
return {'ok', now, unpack(words)}
