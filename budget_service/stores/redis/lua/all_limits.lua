-- The version of a root's stored limits, all of them, and the states of all its accounts that have one.

local root_key, limits_key, accounts_key = unpack(KEYS)

return {
  redis.call('HGET', root_key, 'limits_version') or '0', redis.call('HGETALL', limits_key),
  redis.call('HGETALL', accounts_key),
}
