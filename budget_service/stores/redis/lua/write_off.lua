-- Spend what is left of a level: rules._write_off.

local level = levels[1]
local rest = level.mode == 'track' and NOTHING or remaining(level)
local information, calls = amount_text(rest[1]), amount_text(rest[2])
if not is_nothing(rest) then
  spend({
    kind = 'lost', account = request.account, information = information, calls = calls, unit_id = unit_id,
    request_id = request.request_id, release_id = '', query_id = '', time = time_text(now),
  }, holds())
end
return finish(charged_text(information, calls, '0'))
