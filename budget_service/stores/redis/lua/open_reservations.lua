-- How many reservations of some root accounts are open. KEYS: of each root its record, and its reservations by when they
-- lapse. ARGV: the time to use or ''.

local time, count = clock(ARGV[1]), 0
for index = 1, #KEYS, 2 do
  local root = redis.call('HMGET', KEYS[index], 'ahead', 'last_time')
  count = count + redis.call('ZCOUNT', KEYS[index + 1], '(' .. now(time, root[1], root[2]), '+inf')
end
return count
