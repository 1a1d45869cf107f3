-- Set limits: rules._set_limits. `changes` are {level, limit or ''} each.

local count, added = redis.call('HLEN', limits_key), 0
for _, change in ipairs(request.changes) do
  if change[2] ~= '' then added = added + 1 end
end
if added > 0 and count + added > tonumber(request.most_limits) then
  return finish({'refused', 'TOO_MANY_LIMITS'})
end
limits_version = time_text(tonumber(limits_version) + 1)
for _, change in ipairs(request.changes) do
  if change[2] == '' then
    redis.call('HDEL', limits_key, change[1])
  else
    redis.call('HSET', limits_key, change[1], change[2])
  end
end
return finish({'limits', limits_version})
