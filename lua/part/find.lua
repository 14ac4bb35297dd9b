-- The state a job is in: the index that holds it. Nine looks, so only where the state is not known.
local function state_of(key)
  for state = QUEUED, CANCELLED do
    if call('ZSCORE', KEYS[state], key) then return state end
  end
end
