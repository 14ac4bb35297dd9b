-- What of a pushed job would break its record or whoever reads it: the field at fault.
local function whole(x, min, max) return x and x >= min and x <= max and x % 1 == 0 end

-- UTF-8 without control characters. Rust reads keys and campaigns as such: anything else it could only park.
local function is_text(s)
  if s:find('%c') then return false end
  if not s:find('[\128-\255]') then return true end
  if s:find('\194[\128-\159]') or s:find('\224[\128-\159]') or s:find('\237[\160-\191]') or s:find('\240[\128-\143]')
    or s:find('\244[\144-\191]') then return false end
  s = s:gsub('[\194-\223][\128-\191]', ' '):gsub('[\224-\239][\128-\191][\128-\191]', ' ')
  return not s:gsub('[\240-\244][\128-\191][\128-\191][\128-\191]', ' '):find('[\128-\255]')
end

local function fault(key, at, expires, cost, campaign)
  return (#key == 0 or #key > 200 or not is_text(key)) and 'key' or not whole(at, 0, 4102444800000) and 'at_ms'
    or not whole(expires, 0, 4102444800000) and 'expires_at_ms' or not whole(cost, 1, 1000) and 'cost'
    or (#campaign > 40 or not is_text(campaign)) and 'campaign'
end
