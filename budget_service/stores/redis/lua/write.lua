-- Write what a batch changes, if its root account is as it was loaded and is not kept for another service, and if it was
-- decided lately; return whether it was written. `transaction.py` makes the commands, of which the first one gives the
-- root its next revision. ARGV: the commands, the revision that was loaded, the name of the service, until when.

local root_key, turn_key = unpack(KEYS)

local turn = redis.call('GET', turn_key)
if (redis.call('HGET', root_key, 'revision') or '') ~= ARGV[2] or (turn and turn ~= ARGV[3]) then return 0 end
-- A service that was held up for long has decided by a time that is over.
if clock('') > tonumber(ARGV[4]) then return 0 end

-- Redis does not take back what a script wrote before it failed, so damage that a command would meet is looked for first.
local commands, seen = cmsgpack.unpack(ARGV[1]), {}
for _, command in ipairs(commands) do
  local key = command[2]
  local damage = not seen[key] and misfit({key})
  if damage then return damage end
  seen[key] = true
  local sum = command[1] == 'HINCRBY' and redis.call('HGET', key, command[3])
  if sum and not string.match(sum, '^%d+$') then return damaged(key) end
end

local written = 0
local function write()
  for _, command in ipairs(commands) do
    redis.call(unpack(command))
    written = written + 1
  end
  if turn then redis.call('DEL', turn_key) end
end

local is_done, problem = pcall(write)
if is_done then return 1 end
if written > 0 then return redis.error_reply('GRISPARTLY a part of a change was written, and not the rest') end
return type(problem) == 'table' and problem or redis.error_reply(problem)
