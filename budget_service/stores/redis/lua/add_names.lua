-- Keep the rows of names that have none yet, and return what is kept of each name. ARGV: {{name, id, key}, ...}.

local names_key, ids_key = unpack(KEYS)
local rows, new, taken = cmsgpack.unpack(ARGV[1]), {}, {}

-- Redis does not take back what a script wrote before it failed, so everything is looked at first.
local damage = misfit({names_key, ids_key})
if damage then return damage end
-- Where all names were lost, everybody would begin anew.
if redis.call('HLEN', names_key) ~= redis.call('HLEN', ids_key) then return damaged(names_key) end
for _, row in ipairs(rows) do
  local name, id = row[1], row[2]
  if redis.call('HEXISTS', names_key, name) == 0 then
    local other = taken[id] or redis.call('HGET', ids_key, id)
    if other and other ~= name then return damaged(ids_key) end
    taken[id] = name
    table.insert(new, row)
  end
end

for _, row in ipairs(new) do
  local name, id, key = unpack(row)
  redis.call('HSET', names_key, name, id .. ':' .. key)
  redis.call('HSET', ids_key, id, name)
end
local kept = {}
for index, row in ipairs(rows) do kept[index] = redis.call('HGET', names_key, row[1]) end
return kept
