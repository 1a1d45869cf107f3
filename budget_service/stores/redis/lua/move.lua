-- Move an account to another name: closing.change_account. `above` are the levels above it, `name` is its last segment.

local accounts_key = KEYS[10]
local source, target = request.account, request.target
local state = redis.call('HGET', accounts_key, source)
-- account_states.state_text
local word, names = string.match(state or 'open', '^(%a+)(.*)$')
local balance, limit = redis.call('HGET', balances_key, source), redis.call('HGET', limits_key, source)

local function is_closed_above()
  for _, level in ipairs(request.above) do
    if string.match(redis.call('HGET', accounts_key, level) or 'open', '^%a+') ~= 'open' then return true end
  end
  return false
end

-- Whether anything is kept for a level below this one. Of limits and states there is a bounded number.
local function is_occupied(level)
  if redis.call('SISMEMBER', parents_key(), level) == 1 then return true end
  local pattern = string.gsub(level, '[%*%?%[%]\\]', '\\%0') .. '/*'
  for _, key in ipairs({limits_key, accounts_key}) do
    local cursor = '0'
    repeat
      local found = redis.call('HSCAN', key, cursor, 'MATCH', pattern, 'COUNT', 1000)
      if #found[2] > 0 then return true end
      cursor = found[1]
    until cursor == '0'
  end
  return false
end

local function is_used(level)
  for _, key in ipairs({balances_key, limits_key, accounts_key}) do
    if redis.call('HEXISTS', key, level) == 1 then return true end
  end
  return is_occupied(level)
end

local function refusal()
  if word == 'moved' then return 'ACCOUNT_MOVED' end
  if word == 'closed' or is_closed_above() then return 'ACCOUNT_CLOSED' end
  if is_occupied(source) then return 'HAS_ACCOUNTS_BELOW' end
  if is_used(target) then return 'TARGET_USED' end
  if not balance and not limit then return 'NOTHING_TO_MOVE' end
  local _, count = string.gsub(names, '/', '')
  if count >= tonumber(request.most_names) then return 'MOVED_TOO_OFTEN' end
  local stored = redis.call('HLEN', limits_key) + redis.call('HLEN', accounts_key)
  return stored + (state and 1 or 2) > tonumber(request.most_limits) and 'TOO_MANY_LIMITS'
end

local function move_field(key, value)
  if not value then return end
  redis.call('HDEL', key, source)
  redis.call('HSET', key, target, value)
end

local function move_reservations()
  local fields = redis.call('HGETALL', reservations_key)
  for index = 1, #fields, 2 do
    local reservation = cjson.decode(fields[index + 1])
    if reservation.account == source then
      reservation.account = target
      for _, hold in ipairs(reservation.holds) do
        if hold[1] == source then hold[1] = target end
      end
      redis.call('HSET', reservations_key, fields[index], cjson.encode(reservation))
    end
  end
end

local reason = refusal()
if reason then return finish({'refused', reason}) end
move_field(balances_key, balance)
move_field(limits_key, limit)
if redis.call('EXISTS', past_key(source)) == 1 then redis.call('RENAME', past_key(source), past_key(target)) end
move_reservations()
redis.call('HSET', accounts_key, source, 'moved', target, 'open' .. names .. '/' .. request.name)
limits_version = next_limits_version()
table.insert(journal, {
  kind = 'move', account = source, information = '0', calls = '0', unit_id = '',
  request_id = request.request_id, release_id = '', query_id = '', time = time_text(now), holds = {},
  reason = request.reason,
})
return finish({'limits', limits_version})
