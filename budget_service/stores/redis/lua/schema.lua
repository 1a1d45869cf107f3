-- The first part of every script that changes the ledger: a program of another schema than the ledger's changes nothing,
-- and neither does any in a Redis that was emptied under it. The last key is that of the schema, the last argument the
-- program's own.

if redis.call('GET', KEYS[#KEYS]) ~= ARGV[#ARGV] then
  return redis.error_reply('GRISSCHEMA this ledger has another schema than this program, or is gone')
end
