-- The record of a job: a packed header that scripts read and patch, the campaign, the document (which only
-- Rust reads), then the history as JSON lines. crates/store/src/record.rs is the same in Rust.
local HEADER = '>BBc8c16BHBBHHBHI6I6I6I6I6BI4'
local HEADER_BYTES, VERSION = 73, 1
local AMBIGUOUS, STARTED, CANCEL, BODY, RECEIPT, LATE, ERASED = 1, 2, 4, 8, 16, 32, 64

-- The fields of a header, or nil where the record is missing, newer than this script, or odd.
local function read(record)
  if not record or #record < HEADER_BYTES or record:byte(1) ~= VERSION then return nil end
  local version, flags, birth, fingerprint, spent, throttles, lapses, run, attempts, cost, revision, replays,
    expires_at, created_at, throttled_since, sent_since, last_settled, campaign_len, document_len =
    struct.unpack(HEADER, record)
  if #record < HEADER_BYTES + campaign_len + document_len then return nil end
  -- One constructor, because a table that grows field by field is made anew five times on the way.
  return {version = version, flags = flags, birth = birth, fingerprint = fingerprint, spent = spent,
    throttles = throttles, lapses = lapses, run = run, attempts = attempts, cost = cost, revision = revision,
    replays = replays, expires_at = expires_at, created_at = created_at, throttled_since = throttled_since,
    sent_since = sent_since, last_settled = last_settled, campaign_len = campaign_len, document_len = document_len}
end

-- Only what a claim looks at; nil as above. A third of the cost of reading it all.
local GLANCE = '>xB' .. ('x'):rep(27) .. 'BxxxHxxxI6' .. ('x'):rep(18) .. 'I6BI4'
local function glance(record)
  if not record or #record < HEADER_BYTES or record:byte(1) ~= VERSION then return nil end
  local flags, lapses, cost, expires_at, last_settled, campaign_len, document_len = struct.unpack(GLANCE, record)
  if #record < HEADER_BYTES + campaign_len + document_len then return nil end
  return {flags = flags, lapses = lapses, cost = cost, expires_at = expires_at, last_settled = last_settled}
end

local function pack(h)
  return struct.pack(HEADER, h.version, h.flags, h.birth, h.fingerprint, h.spent, h.throttles, h.lapses, h.run,
    h.attempts, h.cost, h.revision, h.replays, h.expires_at, h.created_at, h.throttled_since, h.sent_since,
    h.last_settled, h.campaign_len, h.document_len)
end

local function has(flags, flag) return flags % (flag * 2) >= flag end

local function with(flags, flag) return has(flags, flag) and flags or flags + flag end

local function without(flags, flag) return has(flags, flag) and flags - flag or flags end

-- The record with this header, keeping campaign and document, and this history.
local function rewrite(record, h, history)
  return pack(h) .. record:sub(HEADER_BYTES + 1, HEADER_BYTES + h.campaign_len + h.document_len) .. history
end

-- The record without its document: what is kept of a job that is over.
local function receipt(record, h, history)
  local campaign = record:sub(HEADER_BYTES + 1, HEADER_BYTES + h.campaign_len)
  h.document_len, h.flags = 0, with(without(h.flags, BODY), RECEIPT)
  return pack(h) .. campaign .. history
end

local function history_of(record, h)
  return record:sub(HEADER_BYTES + h.campaign_len + h.document_len + 1)
end
