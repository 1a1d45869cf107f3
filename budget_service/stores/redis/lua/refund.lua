-- Give back what was charged for a release: rules._refund.

local own = cost(request.information, request.calls)
local has_shared = request.shared_information ~= ''
local above = has_shared and cost(request.shared_information, request.shared_calls) or own

local function cost_at(level)
  return level == request.account and own or above
end

-- Draft._charged_on
local function charged_on(level, first)
  local balance = balance_of(level)
  if not balance then return NOTHING end
  if balance.day_first == first then return balance.today end
  local day = past_day(level, first)
  return day and day.spent or NOTHING
end

-- Draft.counts_any
local function counts_any()
  for _, hold in ipairs(request.holds) do
    for _, each in ipairs(levels) do
      if hold[1] == each.level and counts(balances[each.level], tonumber(hold[2])) then return true end
    end
  end
  return false
end

if not (is_paid(request.release_id) and counts_any()) then return finish({'refused', 'NOT_PAID'}) end
for _, hold in ipairs(request.holds) do
  if not is_within(cost_at(hold[1]), charged_on(hold[1], tonumber(hold[2]))) then
    return finish({'refused', 'NOT_PAID'})
  end
end

for _, hold in ipairs(request.holds) do
  local balance, first, spent = balance_of(hold[1]), tonumber(hold[2]), cost_at(hold[1])
  -- Balance.refunded
  if counts(balance, first) then
    balance.spent = taken(balance.spent, spent)
    local day = balance.day_first ~= first and day_of(balance, first)
    if day then day.spent = taken(day.spent, spent) end
  end
  if balance.day_first == first then
    balance.today = taken(balance.today, spent)
  else
    change_day(hold[1], first, taken, spent)
  end
end
if recorded_release(request.query_id) == request.release_id then
  redis.call('DEL', payment_key('query', request.query_id))
end
redis.call('DEL', payment_key('release', request.release_id))
table.insert(journal, {
  kind = 'refunded', account = request.account, information = request.information, calls = request.calls,
  unit_id = request.unit_id, request_id = request.request_id, release_id = request.release_id,
  query_id = request.query_id, time = time_text(now), holds = request.holds, reason = request.reason,
  shared_information = has_shared and request.shared_information or nil,
  shared_calls = has_shared and request.shared_calls or nil,
})
return finish({'released', request.information, request.calls, request.unit_id})
