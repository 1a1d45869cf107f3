-- Rows by their keys, and ranges of rows: {the time, the root's revision, a text or false for each key, and for each range
-- {name, text, ...}}. With `turn` it begins a transaction: nothing is read while the root is kept for another one, and with
-- `claims` it is kept for this one.

local revision_key, turn_key = unpack(KEYS)
local asked = cmsgpack.unpack(ARGV[1])

local damage = misfit(revision_key, 'string') or misfit(turn_key, 'string')
for _, range in ipairs(asked.ranges) do damage = damage or misfit(range[1], 'zset') end
if damage then return damage end

if asked.turn ~= '' then
  local turn = redis.call('GET', turn_key)
  if turn and turn ~= asked.turn then return false end
  if asked.claims then redis.call('SET', turn_key, asked.turn, 'PX', asked.claims) end
end

local function text_of(key)
  local text = redis.pcall('GET', key)
  if type(text) == 'table' then damage = damage or damaged(key) end
  return text
end

local texts, ranges = {}, {}
for index, key in ipairs(asked.keys) do texts[index] = text_of(key) end
for index, range in ipairs(asked.ranges) do
  local names_key, prefix, after, before, most = unpack(range)
  local found = {}
  for _, name in ipairs(redis.call('ZRANGEBYLEX', names_key, '(' .. after, '(' .. before, 'LIMIT', 0, most)) do
    table.insert(found, name)
    -- One that is named and not there is damage too: its text is empty.
    table.insert(found, text_of(prefix .. name) or '')
  end
  ranges[index] = found
end
if damage then return damage end
return {string.format('%.0f', clock(asked.clock)), redis.call('GET', revision_key) or '', texts, ranges}
