-- Jobs past their `expires_at` move without token or slot: to expired, or to unconfirmed where any attempt may have
-- been accepted. The same count as a settle would write. The others are what is left of the heads.
local function expire(job, h, now, job_prefix, body_prefix, ttl_s)
  local target = has(h.flags, AMBIGUOUS) and UNCONFIRMED or EXPIRED
  if target == EXPIRED then
    call('SET', job_prefix .. job.key, receipt(job.record, h, history_of(job.record, h):match('[^\n]*\n$') or ''))
    call('UNLINK', body_prefix .. job.key)
  end
  call('ZREM', KEYS[job.from], job.key)
  call('ZADD', KEYS[target], now, job.key)
  call('ZREM', PENDING_SINCE, job.key)
  call('HINCRBY', MINUTE, '|expired|' .. STATES[target], 1)
  call('EXPIRE', MINUTE, ttl_s)
end

local function expire_heads(heads, now, job_prefix, body_prefix, ttl_s)
  local left, gone = {}, {}
  for _, job in ipairs(heads) do
    local is_over = job.h and job.h.expires_at > 0 and job.h.expires_at <= now
    local into = is_over and gone or left
    into[#into + 1] = job
  end
  for _, job in ipairs(gone) do expire(job, read(job.record), now, job_prefix, body_prefix, ttl_s) end
  return left, #gone
end
