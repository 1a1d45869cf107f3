-- The version of a root's stored limits, and those of the levels in ARGV, '' where there is none.

local root_key, limits_key = unpack(KEYS)

local found = {redis.call('HGET', root_key, 'limits_version') or '0'}
for _, level in ipairs(ARGV) do
  table.insert(found, redis.call('HGET', limits_key, level) or '')
end
return found
