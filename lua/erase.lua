-- Removes the content of a job and leaves its receipt, so that its key is still known until retention has passed.
-- Refuses: a job in flight (its worker holds the content; cancel it first), a record that is odd. An entry whose record
--   is gone is removed: nothing else could.
-- ARGV: key; KEYS after the class's 13: its record key, its body key.
-- Answers: erased state · in_flight · missing
-- Called by: operators, by key. A repeat erases what is erased.
-- parts: record find
local now = now_ms()
local record, state = call('GET', KEYS[14]), state_of(ARGV[1])
local h = read(record)
if not state or record and not h then return {'missing'} end
if state == IN_FLIGHT then return {'in_flight'} end
if not record then
  call('ZREM', KEYS[state], ARGV[1])
  call('ZREM', PENDING_SINCE, ARGV[1])
  return {'erased', STATES[state]}
end
h.flags = with(h.flags, ERASED)
call('SET', KEYS[14], receipt(record, h, ''))
call('UNLINK', KEYS[15])
if state < IN_FLIGHT or state == DEFERRED or state == UNCONFIRMED then
  call('ZREM', KEYS[state], ARGV[1])
  call('ZREM', PENDING_SINCE, ARGV[1])
  call('ZADD', KEYS[CANCELLED], now, ARGV[1])
  state = CANCELLED
end
return {'erased', STATES[state]}
