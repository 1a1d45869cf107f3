-- Set limits: administration.set_limits. `changes` are {level, limit or ''} each.

local count, added = redis.call('HLEN', limits_key) + redis.call('HLEN', KEYS[10]), 0
for _, change in ipairs(request.changes) do
  if change[2] ~= '' then added = added + 1 end
end
if added > 0 and count + added > tonumber(request.most_limits) then
  return finish({'refused', 'TOO_MANY_LIMITS'})
end
limits_version = time_text(tonumber(limits_version) + 1)
for _, change in ipairs(request.changes) do
  local before = redis.call('HGET', limits_key, change[1]) or ''
  table.insert(journal, {
    kind = 'limit', account = change[1], information = '0', calls = '0', unit_id = '',
    request_id = request.request_id, release_id = '', query_id = '', time = time_text(now), holds = {},
    reason = before .. '>' .. change[2],
  })
  if change[2] == '' then
    redis.call('HDEL', limits_key, change[1])
  else
    redis.call('HSET', limits_key, change[1], change[2])
  end
end
return finish({'limits', limits_version})
