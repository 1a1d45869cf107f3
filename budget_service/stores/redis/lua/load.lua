-- What a batch of requests names, of one root account at one time; `transaction.py` asks and reads the answer. With
-- `turn` it begins a transaction: nothing is loaded while the root is kept for another one, and with `claims` it is kept
-- for this one.

local root_key, balances_key, reservations_key, ends_key, limits_key, closed_key, turn_key = unpack(KEYS)
local asked = cmsgpack.unpack(ARGV[1])

local damage = misfit(asked.kept) or misfit(asked.days)
for _, level in ipairs(asked.blocks) do damage = damage or misfit({level[2]}) end
if damage then return damage end

if asked.turn ~= '' then
  local turn = redis.call('GET', turn_key)
  if turn and turn ~= asked.turn then return false end
  if asked.claims then redis.call('SET', turn_key, asked.turn, 'PX', asked.claims) end
end

-- Lua cannot pass on any number of arguments.
local AT_ONCE = 1000

local function fields(key, names)
  local found = {}
  for first = 1, #names, AT_ONCE do
    local texts = redis.call('HMGET', key, unpack(names, first, math.min(first + AT_ONCE - 1, #names)))
    for index, text in ipairs(texts) do found[first + index - 1] = text end
  end
  return found
end

local root = redis.call('HMGET', root_key, 'revision', 'unit_id', 'currency_since', 'next_unit_id', 'next_since',
  'ahead', 'last_time', 'limits_version', 'entries', 'digest')
local time = clock(asked.clock)

local held, paid, due = {}, {}, {}

local function read(text)
  local reservation, levels = cjson.decode(text), {}
  for _, hold in ipairs(reservation.holds) do
    local level = table.concat(reservation.account[1], '/', 1, hold[1])
    table.insert(levels, hold[3] == '' and level or level .. '*' .. hold[3])
  end
  return levels, reservation.query_id .. ''
end

-- Add the balances that a reservation holds, and return its question. What cannot be read here is reported by who asks.
local function add_held(text)
  local is_read, levels, query_id = pcall(read, text)
  if not is_read then return '' end
  for _, level in ipairs(levels) do
    table.insert(held, level)
    table.insert(held, redis.call('HGET', balances_key, level))
  end
  return query_id
end

local reservations = fields(reservations_key, asked.reservations)
for index, text in ipairs(reservations) do
  local key = text and asked.payers[index] .. add_held(text)
  damage = misfit({key or nil})
  if damage then return damage end
  paid[index] = key and redis.call('GET', key)
end
local lapsed = redis.call('ZRANGEBYSCORE', ends_key, '-inf', now(time, root[6], root[7]), 'LIMIT', 0, asked.most_due)
for _, id in ipairs(lapsed) do
  local text = redis.call('HGET', reservations_key, id)
  if text then add_held(text) end
  table.insert(due, id)
  table.insert(due, text)
end

local administered = {}
if asked.is_administered then
  local closed = {}
  for _, level in ipairs(asked.closed) do
    if redis.call('SISMEMBER', closed_key, level) == 1 then table.insert(closed, level) end
  end
  administered = {
    redis.call('HLEN', limits_key) + redis.call('SCARD', closed_key), fields(limits_key, asked.limits), closed,
  }
end

local past, open = {}, {}
for index, key in ipairs(asked.days) do past[index] = redis.call('HGETALL', key) end

-- The balances of all blocks of some levels, and their past days.
local blocks, past_of_blocks = {}, {}
for _, level in ipairs(asked.blocks) do
  local name, blocks_key, days_key = unpack(level)
  local texts = {}
  for index, block in ipairs(redis.call('SMEMBERS', blocks_key)) do texts[index] = name .. '*' .. block end
  for index, balance in ipairs(fields(balances_key, texts)) do
    table.insert(blocks, texts[index])
    table.insert(blocks, balance)
    if asked.has_open then
      local key = days_key .. string.sub(texts[index], #name + 1)
      damage = misfit({key})
      if damage then return damage end
      table.insert(past_of_blocks, redis.call('HGETALL', key))
    end
  end
end
if asked.has_open then open = redis.call('HGETALL', reservations_key) end

return {
  string.format('%.0f', time), root, fields(balances_key, asked.levels), held,
  #asked.kept > 0 and redis.call('MGET', unpack(asked.kept)) or {}, reservations, paid, due, administered, past, open,
  blocks, past_of_blocks, asked.opening and redis.call('SCARD', asked.opening) or 0,
}
