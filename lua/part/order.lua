-- A decision as Rust packs it (crates/store/src/order.rs), and what it does to a record.
local ORDER, FENCE, LIVE = '>I6c8I6c7BBBBBBBI6I6I6', '>I6c8', '>I6c7BBBBBBBI6I6I6'
local STARTS_THROTTLE, STARTS_WINDOW, REFUND, PROBED, DECIDED_AGAIN = 1, 2, 4, 8, 16
local UNREAD, NEVER, NO_DOCUMENT = ('\0'):rep(8), ('\0'):rep(6), ('\0'):rep(4)
local CAUSES = {'pause', 'retry_after', 'quota', 'suspect', 'outage', 'window'}

local function is_readable(record)
  if not record or #record < HEADER_BYTES or record:byte(1) ~= VERSION then return false end
  local campaign_len, document_len = struct.unpack('>BI4', record, 69)
  return #record >= HEADER_BYTES + campaign_len + document_len
end

-- The last line of a history; of a receipt's only one.
local function last_line(history)
  return history:find('\n', 1, true) == #history and history or history:match('[^\n]*\n$') or ''
end

-- The record after a settle. Counters and deadline are spliced in as the bytes they are in the order: reading
-- nineteen fields and packing them again costs three times as much. `now` is six bytes.
local function settled_record(record, order, counters, flags, marks, now, is_over, history)
  local throttled_since, sent_since = record:sub(51, 56), record:sub(57, 62)
  if has(marks, STARTS_THROTTLE) and throttled_since == NEVER then throttled_since = now end
  if has(marks, STARTS_WINDOW) and sent_since == NEVER then sent_since = now end
  local head = string.char(VERSION, flags) .. record:sub(3, 26) .. counters .. record:sub(34, 50) .. throttled_since
    .. sent_since .. order:sub(1, 6)
  local campaign_len, document_len = struct.unpack('>BI4', record, 69)
  if is_over then
    return head .. record:sub(69, 69) .. NO_DOCUMENT .. record:sub(74, 73 + campaign_len) .. last_line(history)
  end
  return head .. record:sub(69, 73 + campaign_len + document_len) .. history
end

local function cost_of(record) return record:byte(34) * 256 + record:byte(35) end
