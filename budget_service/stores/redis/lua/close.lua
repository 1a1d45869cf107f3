-- Close an account, or open it again: closing.change_account. `act` is the kind of the entry.

local accounts_key = KEYS[10]
local state = redis.call('HGET', accounts_key, request.account)
-- account_states.state_text
local word, names = string.match(state or 'open', '^(%a+)(.*)$')

local function refusal()
  if word == 'moved' then return 'ACCOUNT_MOVED' end
  if request.act == 'reopen' then return word ~= 'closed' and 'ACCOUNT_NOT_CLOSED' end
  if word == 'closed' then return 'ACCOUNT_CLOSED' end
  local count = redis.call('HLEN', limits_key) + redis.call('HLEN', accounts_key)
  return not state and count >= tonumber(request.most_limits) and 'TOO_MANY_LIMITS'
end

local reason = refusal()
if reason then return finish({'refused', reason}) end
if request.act == 'close' then
  redis.call('HSET', accounts_key, request.account, 'closed' .. names)
elseif names == '' then
  redis.call('HDEL', accounts_key, request.account)
else
  redis.call('HSET', accounts_key, request.account, 'open' .. names)
end
limits_version = time_text(tonumber(limits_version) + 1)
table.insert(journal, {
  kind = request.act, account = request.account, information = '0', calls = '0', unit_id = '',
  request_id = request.request_id, release_id = '', query_id = '', time = time_text(now), holds = {},
  reason = request.reason,
})
return finish({'limits', limits_version})
