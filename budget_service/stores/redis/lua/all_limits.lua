-- The version of a root's stored limits, all of them, and all its closed accounts.

local root_key, limits_key, closed_key = unpack(KEYS)

return {
  redis.call('HGET', root_key, 'limits_version') or '0', redis.call('HGETALL', limits_key),
  redis.call('SMEMBERS', closed_key),
}
