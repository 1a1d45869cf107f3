-- The version of a root's stored limits, and those of the levels in ARGV, '' where there is none, then their states.

local root_key, limits_key, accounts_key = unpack(KEYS)

local found = {redis.call('HGET', root_key, 'limits_version') or '0'}
for _, key in ipairs({limits_key, accounts_key}) do
  for _, level in ipairs(ARGV) do
    table.insert(found, redis.call('HGET', key, level) or '')
  end
end
return found
