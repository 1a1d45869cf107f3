-- Replace the base of a root, unless the new one has no more entries. ARGV: its position, its number of entries, itself.

local last = redis.call('HGET', KEYS[1], 'entries')
if not last or tonumber(last) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'position', ARGV[1], 'entries', ARGV[2], 'base', ARGV[3])
end
return 'OK'
