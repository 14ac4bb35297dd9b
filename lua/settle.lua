-- Moves jobs out of in_flight to where their decisions say, and feeds what their ends say of the sender.
-- Refuses: a lost lease (stale), another birth or no record (gone), a repeat (already); a refusal that a suspect
--   hold overtook (held: Rust decides again). A birth of zeros says that Rust could not read the record: it is parked.
-- ARGV: count_ttl_s, refused, terminal, failing, suspect_ms, outage_ms, budgets, {key, order, count, history}...;
--   KEYS after the class's 13: the budgets (credential first), a record key per job, a body key per job.
-- Answers: ok now {moved state | late state | twice state | already '' | stale '' | gone '' | parked state | held cause}...
-- Called by: the worker; an Accepted whose lease was lost is never thrown away.
-- parts: record find hold signal budget order moves late
local now, now_us = now_ms()
local trips, nb, n = read_trips(2), tonumber(ARGV[7]), (#ARGV - 7) / 4
local keys, record_keys = {}, {}
for i = 1, n do keys[i], record_keys[i] = ARGV[4 + i * 4], KEYS[13 + nb + i] end
local leases, records = call('ZMSCORE', KEYS[IN_FLIGHT], unpack(keys)), call('MGET', unpack(record_keys))
local sender, moves, words, refund, now6 = read_sender(KEYS[14]), new_moves(now), {}, 0, struct.pack('>I6', now)

local function live(i, order, record)
  local delay_ms, counters, flags, marks, target, cancelled_target, signal, hold_on, cause, hold_ms, probe_ms =
    struct.unpack(LIVE, order, 15)
  local again, old = has(marks, DECIDED_AGAIN), record:byte(2)
  if signal == REFUSED and sender.credential.cause == 'suspect' and not again then return 'held', 'suspect' end
  hear(sender, again and 0 or signal, now, trips)
  if hold_on > 0 then
    local hold = hold_on == 1 and sender.class or hold_on == 3 and nb > 1 and read_hold(KEYS[15]) or sender.credential
    extend_hold(hold, now, CAUSES[cause], hold_ms, probe_ms)
  end
  if has(marks, REFUND) then refund = refund + read(record).cost end
  if has(old, CANCEL) then target = cancelled_target end
  local is_over, has_body = target == SUBMITTED or target >= EXPIRED, has(old, BODY)
  flags = flags + (is_over and RECEIPT or has_body and BODY or 0) + (has(old, ERASED) and ERASED or 0)
  if is_over and has_body then moves.bodies[#moves.bodies + 1] = i end
  moves.records[i] = settled_record(record, order, counters, flags, marks, now6, is_over, ARGV[7 + i * 4])
  move(moves, keys[i], target, target <= PENDING and now + delay_ms or nil)
  count(moves, ARGV[6 + i * 4] .. '|' .. STATES[target])
  return 'moved', STATES[target]
end

for i = 1, n do
  local order, record, word, extra, signal = ARGV[5 + i * 4], records[i], nil, '', 0
  local deadline, birth = struct.unpack(FENCE, order)
  local mine, known = tonumber(leases[i] or 0) == deadline, is_readable(record)
  if mine and (not known or birth == UNREAD) then
    move(moves, keys[i], DEFERRED)
    word, extra = 'parked', STATES[DEFERRED]
  elseif not known or record:sub(3, 10) ~= birth then
    word = 'gone'
  elseif mine then
    word, extra = live(i, order, record)
  elseif record:sub(63, 68) == order:sub(1, 6) then
    word = 'already'
  else
    word, extra, signal = late(moves, i, keys[i], record, order, ARGV[6 + i * 4], ARGV[7 + i * 4])
    hear(sender, signal or 0, now, trips)
  end
  if word ~= 'moved' and word ~= 'held' then count(moves, '|' .. word .. '|' .. extra) end
  words[i * 2 - 1], words[i * 2] = word, extra
end
carry_out(moves, record_keys, 13 + nb + n, tonumber(ARGV[1]))
write_sender(sender)
for b = 1, refund > 0 and nb or 0 do give_back(KEYS[13 + b], refund, now_us) end
return {'ok', now, unpack(words)}
