-- The first part of scripts that read or change a root: they refuse a key that somebody has given another type than the
-- ledger does. Redis notices that only when it comes to the key, and of strings that are asked for together never.

local TYPES = {
  root = 'hash', turn = 'string', limits = 'hash', accounts = 'hash', parents = 'set', balances = 'hash', days = 'hash',
  reservations = 'hash', ends = 'zset', journal = 'stream', checkpoint = 'hash', paid = 'string', request = 'string',
}

local function damaged(key)
  return redis.error_reply('GRISDAMAGED ' .. key)
end

-- The refusal of the first of these keys that has a wrong type, or nil. Keys of no root have no name here.
local function misfit(keys)
  for _, key in ipairs(keys) do
    local wanted, found = TYPES[string.match(key, '}:(%a+)') or ''], redis.call('TYPE', key).ok
    if wanted and found ~= wanted and found ~= 'none' then return damaged(key) end
  end
end

local damage = misfit(KEYS)
if damage then return damage end
