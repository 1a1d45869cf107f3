-- Remove the oldest entries of a journal that its base stands for. ARGV: how many at most.

local base_key, journal_key = unpack(KEYS)

local base = redis.call('GET', base_key)
if not base then return 0 end
local trimmed = redis.call('XRANGE', journal_key, '-', string.format('%.0f', cjson.decode(base).entries), 'COUNT', ARGV[1])
if #trimmed == 0 then return 0 end
local number = string.match(trimmed[#trimmed][1], '^(%d+)-')
return redis.call('XTRIM', journal_key, 'MINID', string.format('%.0f', tonumber(number) + 1))
