-- Give back what was charged for a release: rules._refund.

local own = cost(request.information, request.calls)
local has_shared = request.shared_information ~= ''
local above = has_shared and cost(request.shared_information, request.shared_calls) or own

local function cost_at(level)
  return level == request.account and own or above
end

-- Balance.charged_in
local function charged_in(balance, first)
  if balance.first == first then return today(balance) end
  return day_of(balance, first).spent
end

local counted = {}
for _, hold in ipairs(request.holds) do
  local balance, first = balance_of(hold[1]), tonumber(hold[2])
  if balance and counts(balance, first) then
    if not is_within(cost_at(hold[1]), charged_in(balance, first)) then return finish({'refused', 'NOT_PAID'}) end
    table.insert(counted, hold)
  end
end
if #counted == 0 or not is_paid(request.release_id) then return finish({'refused', 'NOT_PAID'}) end

-- Balance.refunded
for _, hold in ipairs(counted) do
  local balance, first, spent = balance_of(hold[1]), tonumber(hold[2]), cost_at(hold[1])
  balance.spent = taken(balance.spent, spent)
  local day = balance.first ~= first and day_of(balance, first)
  if day then day.spent = taken(day.spent, spent) end
end
if recorded_release(request.query_id) == request.release_id then
  redis.call('DEL', payment_key('query', request.query_id))
end
redis.call('DEL', payment_key('release', request.release_id))
table.insert(journal, {
  kind = 'refunded', account = request.account, information = request.information, calls = request.calls,
  unit_id = request.unit_id, request_id = request.request_id, release_id = request.release_id,
  query_id = request.query_id, time = time_text(now), holds = counted, reason = request.reason,
  shared_information = has_shared and request.shared_information or nil,
  shared_calls = has_shared and request.shared_calls or nil,
})
return finish({'released', request.information, request.calls, request.unit_id})
