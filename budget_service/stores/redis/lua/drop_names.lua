-- Remove rows of names, unless a name has another id by now. ARGV: {{name, id}, ...}.

local names_key, ids_key = unpack(KEYS)
local rows, ids = cmsgpack.unpack(ARGV[1]), {}

local damage = misfit({names_key, ids_key})
if damage then return damage end
for index, row in ipairs(rows) do
  local kept = redis.call('HGET', names_key, row[1])
  ids[index] = kept and string.match(kept, '^(.-):')
  if kept and not ids[index] then return damaged(names_key) end
end
for index, row in ipairs(rows) do
  if ids[index] == row[2] then
    redis.call('HDEL', names_key, row[1])
    redis.call('HDEL', ids_key, ids[index])
  end
end
return 'OK'
