-- Replace the last checkpoint with one that was written under another key, unless it has fewer entries.
-- ARGV: how many entries the new one has.

local checkpoint_key, written_key = unpack(KEYS)

local last = redis.call('HGET', checkpoint_key, 'entries')
if last and tonumber(last) > tonumber(ARGV[1]) then
  redis.call('UNLINK', written_key)
else
  redis.call('RENAME', written_key, checkpoint_key)
  redis.call('PERSIST', checkpoint_key)
end
return 'OK'
