-- A part of scripts that refuse a key to which somebody has given another type than the ledger does. Redis notices that
-- only when it comes to the key, and does not say which one it was.

local function damaged(key)
  return redis.error_reply('GRISDAMAGED ' .. key)
end

-- The refusal of a key that has another type than this one, or nil.
local function misfit(key, own)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= own then return damaged(key) end
end
