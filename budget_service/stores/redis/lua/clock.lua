-- Let the time of the root go on: administration.resume_clock.

local tolerance = tonumber(request.clock_tolerance)
if math.abs(store_clock - tonumber(request.told_time)) > tolerance then
  return finish({'refused', 'CLOCKS_DISAGREE'})
end
if now - store_clock - ahead < tolerance then return finish({'refused', 'CLOCK_NOT_BEHIND'}) end
ahead = now - store_clock
redis.call('HSET', root_key, 'ahead', time_text(ahead))
table.insert(journal, {
  kind = 'clock', account = request.account, information = '0', calls = '0', unit_id = '',
  request_id = request.request_id, release_id = '', query_id = '', time = time_text(now),
  holds = {{request.account, time_text(ahead)}},
})
return finish({'clock', time_text(ahead)})
