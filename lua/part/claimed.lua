-- The jobs a claim or a reap returns, five values each: key, offset_ms, record ('' = missing), body, state it came from.
-- `body_prefix` spells the key of a body; only Rust knows how keys are spelled.
local function hand_out(answer, jobs, body_prefix)
  local wanted, at = {}, {}
  for i, job in ipairs(jobs) do
    if job.h and has(job.h.flags, BODY) then
      wanted[#wanted + 1] = body_prefix .. job.key
      at[#wanted] = i
    end
  end
  local bodies = {}
  if #wanted > 0 then
    for j, body in ipairs(call('MGET', unpack(wanted))) do bodies[at[j]] = body end
  end
  for i, job in ipairs(jobs) do
    local a = #answer
    answer[a + 1], answer[a + 2], answer[a + 3] = job.key, job.offset_ms or 0, job.record or ''
    answer[a + 4], answer[a + 5] = bodies[i] or '', job.from or 0
  end
  return answer
end
