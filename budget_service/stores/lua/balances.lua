-- Some balances of a root, its open reservations and the last position of its journal, all of one moment:
-- {position, cursor, unit_id, {level, balance, ...}, {id, reservation, ...}}. ARGV: the cursor, about how many balances.

local root_key, balances_key, reservations_key, journal_key = unpack(KEYS)

local scanned = redis.call('HSCAN', balances_key, ARGV[1], 'COUNT', ARGV[2])
local last = redis.call('XREVRANGE', journal_key, '+', '-', 'COUNT', 1)
return {
  last[1] and last[1][1] or '', scanned[1], redis.call('HGET', root_key, 'unit_id') or '', scanned[2],
  redis.call('HGETALL', reservations_key),
}
