-- The version of a root's stored limits, and all of them.

local root_key, limits_key = unpack(KEYS)

return {redis.call('HGET', root_key, 'limits_version') or '0', redis.call('HGETALL', limits_key)}
