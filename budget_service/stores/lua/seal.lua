-- Put the checkpoint that was written beside in the place of the last one, if it has no fewer entries.
-- ARGV: how many entries it has.

local checkpoint_key, written_key = unpack(KEYS)

local last = redis.call('HGET', checkpoint_key, 'entries')
if last and tonumber(last) > tonumber(ARGV[1]) then
  redis.call('UNLINK', written_key)
else
  redis.call('RENAME', written_key, checkpoint_key)
  redis.call('PERSIST', checkpoint_key)
end
return 'OK'
