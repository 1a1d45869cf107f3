-- A part of scripts that refuse a key to which somebody has given another type than the ledger does. Redis notices that
-- only when it comes to the key, does not say which one it was, and of strings that are asked for together never.

local TYPES = {
  root = 'hash', turn = 'string', limits = 'hash', closed = 'set', balances = 'hash', days = 'hash',
  blocks = 'set',
  reservations = 'hash', ends = 'zset', journal = 'stream', base = 'hash', paid = 'string', request = 'string',
}

local function damaged(key)
  return redis.error_reply('GRISDAMAGED ' .. key)
end

-- The refusal of the first of these keys that has a wrong type, or nil. Keys of no root have no name here.
local function misfit(keys)
  for _, key in ipairs(keys) do
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= (TYPES[string.match(key, '}:(%a+)')] or found) then return damaged(key) end
  end
end
