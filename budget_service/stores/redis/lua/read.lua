-- What Python needs to state an account's balances by the pure rules: {time, unit_id, currency since, next unit_id, next
-- since, ahead, last time, limits version, then for each level its balance or '', then the reservations that have lapsed}.
-- With the history: between the levels and the lapsed reservations a list for each level of its past days and their sums,
-- and one of all open reservations.
-- ARGV: the time to use or '', how many have lapsed at most, '1' for the history, the levels.

local root_key, balances_key, reservations_key, ends_key, days_key = unpack(KEYS)

local function clock()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local root = redis.call('HMGET', root_key, 'unit_id', 'last_time', 'limits_version',
  'currency_since', 'next_unit_id', 'next_since', 'ahead')
local now = string.format('%.0f', math.max(clock() + tonumber(root[7] or '0'), tonumber(root[2] or '0')))
local found = {
  now, root[1] or '', root[4] or '0', root[5] or '', root[6] or '0', root[7] or '0', root[2] or '0', root[3] or '0',
}
for index = 4, #ARGV do
  table.insert(found, redis.call('HGET', balances_key, ARGV[index]) or '')
end
if ARGV[3] == '1' then
  for index = 4, #ARGV do
    table.insert(found, redis.call('HGETALL', days_key .. ':' .. ARGV[index]))
  end
  table.insert(found, redis.call('HGETALL', reservations_key))
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', ends_key, '-inf', now, 'LIMIT', 0, ARGV[2])) do
  table.insert(found, id)
  table.insert(found, redis.call('HGET', reservations_key, id))
end
return found
