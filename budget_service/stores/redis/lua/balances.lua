-- Some balances of a root, its record, its open reservations and the last position of its journal, all of one moment:
-- {position, cursor, {level, balance, ...}, {id, reservation, ...}, {{past day, sum, ...} for each of these levels},
-- clock, the record}.
-- ARGV: the cursor, about how many balances, the time to use or ''.

local root_key, balances_key, reservations_key, journal_key, days_key = unpack(KEYS)

local scanned = redis.call('HSCAN', balances_key, ARGV[1], 'COUNT', ARGV[2])
local last = redis.call('XREVRANGE', journal_key, '+', '-', 'COUNT', 1)
local past = {}
for index = 1, #scanned[2], 2 do
  local key = days_key .. ':' .. scanned[2][index]
  local damage = misfit({key})
  if damage then return damage end
  past[(index + 1) / 2] = redis.call('HGETALL', key)
end
return {
  last[1] and last[1][1] or '', scanned[1], scanned[2], redis.call('HGETALL', reservations_key), past,
  string.format('%.0f', clock(ARGV[3])), redis.call('HMGET', root_key, 'unit_id', 'currency_since', 'next_unit_id',
  'next_since', 'ahead', 'last_time', 'limits_version', 'entries', 'digest'),
}
