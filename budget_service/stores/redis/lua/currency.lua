-- Plan the next currency, or none any more: administration.change_currency. `window` is the span that Python found the
-- moment for.

local begins_at = request.window[2]
if now < tonumber(request.window[1]) or (begins_at ~= '' and now >= tonumber(begins_at)) then
  return {'clock', time_text(now)}
end

-- A reservation that has lapsed and is forfeited is a charge, and the first charge fixes the currency.
if has_more_lapsed then
  write_state()
  return {'again', ''}
end

local function refusal()
  if request.unit_id == '' then return next_unit_id == '' and 'NO_CURRENCY_PLANNED' end
  if next_unit_id ~= '' then return 'CURRENCY_PLANNED' end
  if request.unit_id == unit_id then return 'UNIT_UNCHANGED' end
  return begins_at == '' and 'WINDOW_NEVER_ENDS'
end

local reason = refusal()
if reason then return finish({'refused', reason}) end
if request.unit_id == '' then begins_at = '0' end
next_unit_id, next_since = request.unit_id, tonumber(begins_at)
table.insert(journal, {
  kind = 'currency', account = request.account, information = '0', calls = '0', unit_id = request.unit_id,
  request_id = request.request_id, release_id = '', query_id = '', time = time_text(now),
  holds = {{request.account, begins_at}},
})
return finish({'currency', request.unit_id, begins_at})
