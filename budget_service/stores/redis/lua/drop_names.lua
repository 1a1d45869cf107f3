-- Remove the rows of names. ARGV: {name, ...}.

local names_key, ids_key = unpack(KEYS)
local names, ids = cmsgpack.unpack(ARGV[1]), {}

local damage = misfit({names_key, ids_key})
if damage then return damage end
for index, name in ipairs(names) do
  local kept = redis.call('HGET', names_key, name)
  ids[index] = kept and string.match(kept, '^(.-):')
  if kept and not ids[index] then return damaged(names_key) end
end
for index, name in ipairs(names) do
  if ids[index] then
    redis.call('HDEL', names_key, name)
    redis.call('HDEL', ids_key, ids[index])
  end
end
return 'OK'
