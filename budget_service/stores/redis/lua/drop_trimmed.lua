-- Remove the oldest entries of a journal that its base stands for. ARGV: how many at most.

local base_key, journal_key = unpack(KEYS)

local position = redis.call('HGET', base_key, 'position')
if not position then return 0 end
local trimmed = redis.call('XRANGE', journal_key, '-', position, 'COUNT', ARGV[1])
if #trimmed == 0 then return 0 end
local time, number = string.match(trimmed[#trimmed][1], '^(%d+)-(%d+)$')
return redis.call('XTRIM', journal_key, 'MINID', time .. '-' .. string.format('%.0f', tonumber(number) + 1))
