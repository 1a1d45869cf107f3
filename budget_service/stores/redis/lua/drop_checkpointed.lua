-- Remove the oldest entries that a checkpoint covers from a journal. ARGV: how many at most.

local checkpoint_key, journal_key = unpack(KEYS)

local position = redis.call('HGET', checkpoint_key, 'position')
if not position or position == '' then return 0 end
local covered = redis.call('XRANGE', journal_key, '-', position, 'COUNT', ARGV[1])
if #covered == 0 then return 0 end
local time, number = string.match(covered[#covered][1], '^(%d+)-(%d+)$')
return redis.call('XTRIM', journal_key, 'MINID', time .. '-' .. string.format('%.0f', tonumber(number) + 1))
