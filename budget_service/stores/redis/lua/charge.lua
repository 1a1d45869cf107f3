-- Charge: rules._charge and rules._settle.

local asked = cost(request.information, request.calls)

local function entry(kind, query_id)
  return {
    kind = kind, account = request.account, information = request.information, calls = request.calls,
    unit_id = request.unit_id, request_id = request.request_id, release_id = request.release_id,
    query_id = query_id, time = time_text(now), policy_statement = request.policy_statement,
  }
end

local function contradicts(recorded)
  return recorded ~= '' and recorded ~= request.release_id
end

-- `span` is the start of the leaf's span in which the release is now paid for; nil: in none. What takes nothing is no
-- payment.
local function charged(is_spent, query_id, span)
  local payment = is_spent and span and request.release_id ~= ''
    and {release_id = request.release_id, query_id = query_id, span = span} or nil
  return finish(charged_text(request.information, request.calls, '0'), payment, not is_spent and now or nil)
end

-- Draft.payment_span
local function payment_span(reservation)
  for _, hold in ipairs(reservation.holds) do
    if hold[1] == levels[#levels].level then
      local first = tonumber(hold[2])
      return counts(leaf, first) and first or nil
    end
  end
  return nil
end

local function already_paid()
  return finish(charged_text('0', '0', '1'), nil, now)
end

local function settle()
  local reservation = named_reservation()
  if not is_open(reservation) then return finish({'refused', 'RESERVATION_OVER'}) end
  if request.unit_id ~= reservation.unit_id then return finish({'refused', 'UNIT_MISMATCH'}) end
  local query_id = reservation.query_id
  if request.query_id ~= '' and request.query_id ~= query_id then
    return finish({'refused', 'QUERY_MISMATCH'})
  end
  if contradicts(reservation.paid_release_id) or contradicts(recorded_release(query_id)) then
    return finish({'refused', 'RELEASE_MISMATCH'})
  end
  if reservation.paid_release_id ~= '' and not was_paid(request.release_id) then
    return finish({'refused', 'RESERVATION_OVER'})
  end
  if reservation.paid_release_id ~= '' or is_paid(request.release_id) then
    end_reservation(request.reservation_id, reservation)
    return already_paid()
  end
  if not is_within(asked, cost(reservation.information, reservation.calls)) then
    return finish({'refused', 'COST_ABOVE_RESERVATION'})
  end
  end_reservation(request.reservation_id, reservation)
  local settled = entry('settled', query_id)
  if request.worst_case_above == '1' then
    settled.shared_information, settled.shared_calls = reservation.information, reservation.calls
  end
  local span = payment_span(reservation)
  return charged(spend(settled, reservation.holds), query_id, span)
end

local function deduct()
  if contradicts(recorded_release(request.query_id)) then return finish({'refused', 'RELEASE_MISMATCH'}) end
  if is_paid(request.release_id) then return already_paid() end
  local refusal = admission(asked)
  if refusal then return finish(refusal) end
  local is_spent = spend(entry('direct', request.query_id), holds())
  return charged(is_spent, request.query_id, leaf.day_first)
end

if unit_id ~= '' and unit_id ~= request.unit_id then return finish({'refused', 'UNIT_MISMATCH'}) end
if request.reservation_id ~= '' then return settle() end
return deduct()
