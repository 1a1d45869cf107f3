-- Hold a worst case: rules._reserve.

if unit_id ~= '' and unit_id ~= request.unit_id then return finish({'refused', 'UNIT_MISMATCH'}) end
local recorded = recorded_release(request.query_id)
local already_paid = recorded ~= ''
if not already_paid then
  local refusal = admission(cost(request.information, request.calls))
  if refusal then return finish(refusal) end
end

local held = already_paid and NOTHING or cost(request.information, request.calls)
opened = {
  account = request.account, request_id = request.request_id, query_id = request.query_id,
  information = amount_text(held[1]), calls = amount_text(held[2]), unit_id = request.unit_id,
  expires_at = time_text(now + tonumber(request.ttl)), paid_release_id = recorded, forfeits = request.forfeits,
  holds = already_paid and {} or holds(),
}
add_reserved(opened.holds, added, held)
local outcome = {
  'reserved', request.reservation_id, opened.information, opened.calls, opened.expires_at,
  already_paid and '1' or '0',
}
return finish(outcome, nil, tonumber(opened.expires_at))
