-- A job past its `expires_at` moves without token or slot: to expired, or to unconfirmed where any attempt may
-- have been accepted. The same count as a settle would write.
local function expire(job, h, now, job_prefix, body_prefix, ttl_s)
  local target = has(h.flags, AMBIGUOUS) and UNCONFIRMED or EXPIRED
  if target == EXPIRED then
    call('SET', job_prefix .. job.key, receipt(job.record, h, history_of(job.record, h):match('[^\n]*\n$') or ''))
    call('UNLINK', body_prefix .. job.key)
  end
  call('ZADD', KEYS[target], now, job.key)
  call('ZREM', PENDING_SINCE, job.key)
  call('HINCRBY', MINUTE, '|expired|' .. STATES[target], 1)
  call('EXPIRE', MINUTE, ttl_s)
end
