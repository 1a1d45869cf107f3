-- The name of the ledger and its count, after something was added to it. ARGV: a name for a ledger that has none, what
-- to add.

redis.call('HSETNX', KEYS[1], 'ledger_id', ARGV[1])
if ARGV[2] ~= '0' then redis.call('HINCRBY', KEYS[1], 'count', ARGV[2]) end
return {redis.call('HGET', KEYS[1], 'ledger_id'), redis.call('HGET', KEYS[1], 'count') or '0'}
