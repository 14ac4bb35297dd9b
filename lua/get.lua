-- Reads one job: its state, since when or until when, its record and body.
-- Refuses: nothing; writes nothing.
-- ARGV: key; KEYS after the class's 13: its record key, its body key.
-- Answers: ok now state score record body · missing
-- Called by: the API and the command line.
-- parts: find
local now = now_ms()
local record, state = call('GET', KEYS[14]), state_of(ARGV[1])
if not record and not state then return {'missing'} end
local score = state and call('ZSCORE', KEYS[state], ARGV[1]) or '0'
return {'ok', now, STATES[state] or '', score, record or '', call('GET', KEYS[15]) or ''}
