-- Write rows and entries, if the root is as it was read and is not kept for another service, and if it was decided lately:
-- 1; if not, 0; 2 if a row that has to be new is there. Without writes it only gives up the turn. ARGV: what is written,
-- the revision that was read, the name of the service, until when.

local revision_key, turn_key, names_key, journal_key = unpack(KEYS)
local writes = cmsgpack.unpack(ARGV[1])

local turn = redis.call('GET', turn_key)
if (redis.call('GET', revision_key) or '') ~= ARGV[2] or (turn and turn ~= ARGV[3]) then return 0 end
-- A service that was held up for long has decided by a time that is over.
if clock('') > tonumber(ARGV[4]) then return 0 end

-- Redis does not take back what a script wrote before it failed, so damage that it would meet is looked for first.
local damage = misfit(names_key, 'zset') or misfit(journal_key, 'stream')
for _, put in ipairs(writes.puts) do
  damage = damage or misfit(put[1], 'string')
  if put[5] and redis.call('EXISTS', put[1]) == 1 then return 2 end
end
if damage then return damage end

local written = 0
local function call(...)
  redis.call(...)
  written = written + 1
end
local function write()
  -- They come first: an entry whose number is taken leaves nothing done.
  for _, entry in ipairs(writes.entries) do call('XADD', journal_key, entry[1], 'entry', entry[2]) end
  for _, each in ipairs(writes.deletes) do
    call('DEL', each[1])
    call('ZREM', names_key, each[2])
  end
  for _, put in ipairs(writes.puts) do
    if put[4] then
      call('SET', put[1], put[2], 'PX', put[4])
    else
      call('SET', put[1], put[2])
      call('ZADD', names_key, 0, put[3])
    end
  end
  if writes.revision then call('SET', revision_key, writes.revision) end
  if turn then call('DEL', turn_key) end
end

local is_done, problem = pcall(write)
if is_done then return 1 end
if written > 0 then return redis.error_reply('GRISPARTLY a part of a change was written, and not the rest') end
return type(problem) == 'table' and problem or redis.error_reply(problem)
