-- The first part of every script: the arithmetic and the draft of budget_service/ledger, in the same order.
--
-- Python passes one JSON object of strings, with everything computed that needs a calendar or a hash:
--   clock         the time to use instead of Redis' own; empty outside tests
--   account       the path, joined by slashes
--   path          all levels that the request counts on, from the widest
--   levels        {level, depth, maximum information, maximum calls, mode, window start, window end or '',
--                 counts from, leaves at or '', rule, day start, day end} each
--   others        {level, day start, day end} of each level of the path that has no limit
--   leaving       for levels with another rule than their balance: when each past day stops counting, by its start
--   limits_version  of the root's stored limits that the levels were found with; empty: they do not matter
--   closed        set where the account is closed to the request, which then has no levels
--   fingerprint   of the request; the other fields are the request's own
-- Times are microseconds, exact in a double until the year 2255. Nothing is written before everything is decided,
-- because Redis does not take back what a script wrote before it failed.

local root_key, balances_key, reservations_key, ends_key, journal_key, paid_key, outcome_key, limits_key,
  days_key = unpack(KEYS)
local request = cjson.decode(ARGV[1])

-- Amounts are 64-bit integers, which a double cannot hold: {high, low} stands for high * 10^9 + low. Whichever has been
-- a text keeps it in third place: writing numbers is most of what a script does.

local BASE = 1000000000
local LARGEST = {9223372036, 854775807}

local function amount(text)
  local cut = #text - 9
  if cut <= 0 then return {0, tonumber(text), text} end
  return {tonumber(string.sub(text, 1, cut)), tonumber(string.sub(text, cut + 1)), text}
end

local function amount_text(value)
  if value[3] then return value[3] end
  if value[1] == 0 then
    value[3] = string.format('%.0f', value[2])
  else
    value[3] = string.format('%.0f%09.0f', value[1], value[2])
  end
  return value[3]
end

local function plus(a, b)
  local low = a[2] + b[2]
  if low >= BASE then return {a[1] + b[1] + 1, low - BASE} end
  return {a[1] + b[1], low}
end

local function minus(a, b)
  local low = a[2] - b[2]
  if low < 0 then return {a[1] - b[1] - 1, low + BASE} end
  return {a[1] - b[1], low}
end

local function above(a, b)
  return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2])
end

-- A cost is {information, calls}.

local NOTHING = {{0, 0}, {0, 0}}
local UNITS = {'information', 'calls'}

local function cost(information, calls) return {amount(information), amount(calls)} end
local function added(a, b) return {plus(a[1], b[1]), plus(a[2], b[2])} end
local function taken(a, b) return {minus(a[1], b[1]), minus(a[2], b[2])} end
local function is_within(a, b) return not above(a[1], b[1]) and not above(a[2], b[2]) end

-- values.capped_sum
local function capped(sum)
  return {above(sum[1], LARGEST) and LARGEST or sum[1], above(sum[2], LARGEST) and LARGEST or sum[2]}
end

-- Times are numbers, and `nil` for those that never come, which are written as ''.

local time_texts = {}

local function time_of(text)
  local time = tonumber(text)
  if time then time_texts[time] = text end
  return time
end

local function time_text(time)
  if not time then return '' end
  local text = time_texts[time]
  if not text then
    text = string.format('%.0f', time)
    time_texts[time] = text
  end
  return text
end

-- The ledger's time: Redis' clock, never lower than the last time recorded in this root.

local function clock()
  if request.clock ~= '' then return tonumber(request.clock) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local root = redis.call('HMGET', root_key, 'unit_id', 'last_time', 'limits_version',
  'currency_since', 'next_unit_id', 'next_since', 'ahead')
local limits_version = root[3] or '0'
local unit_id, currency_since = root[1] or '', tonumber(root[4] or '0')
local next_unit_id, next_since = root[5] or '', tonumber(root[6] or '0')
local store_clock, ahead = clock(), tonumber(root[7] or '0')
local now = math.max(store_clock + ahead, tonumber(root[2] or '0'))
-- Currency.at
if next_unit_id ~= '' and now >= next_since then
  unit_id, currency_since, next_unit_id, next_since = next_unit_id, next_since, '', 0
end

-- RootRecord.next_limits_version
local function next_limits_version()
  return time_text(math.max(tonumber(limits_version) + 1, now))
end

local remembered = redis.call('HMGET', outcome_key, 'keep_until', 'fingerprint', 'outcome')
if remembered[1] and now < tonumber(remembered[1]) then
  if remembered[2] ~= request.fingerprint then return {'reused', ''} end
  return {'replayed', remembered[3]}
end

if request.limits_version ~= '' and request.limits_version ~= limits_version then return {'limits', ''} end

local levels = {}
for index, each in ipairs(request.levels) do
  levels[index] = {
    level = each[1], depth = each[2], maximum = cost(each[3], each[4]), mode = each[5],
    first = time_of(each[6]), last = time_of(each[7]), counts_from = time_of(each[8]), leaves = time_of(each[9]),
    rule = each[10], day_first = time_of(each[11]), day_last = time_of(each[12]),
  }
  -- Python guessed the time to find the windows. Where it guessed wrong it is told the time and asks again.
  if now < levels[index].day_first or now >= levels[index].day_last then return {'clock', time_text(now)} end
end

local others = {}
for index, each in ipairs(request.others) do
  others[index] = {level = each[1], day_first = time_of(each[2]), day_last = time_of(each[3])}
  if now < others[index].day_first or now >= others[index].day_last then return {'clock', time_text(now)} end
end

-- The draft: balances by level as they will be written, reservations that end, entries for the journal.

local balances = {}
local new_levels = {}
local ended = {}
local journal = {}
local opened = nil

local function parse_days(text)
  local days = {}
  if text == '' then return days end
  for first, leaves, information, calls in string.gmatch(text, '(%d+),(%d+),(%d+),(%d+);') do
    table.insert(days, {first = time_of(first), leaves = time_of(leaves), spent = cost(information, calls)})
  end
  return days
end

local function days_text(days)
  if #days == 0 then return '' end
  local parts = {}
  for index, day in ipairs(days) do
    parts[index] = table.concat({
      time_text(day.first), time_text(day.leaves), amount_text(day.spent[1]), amount_text(day.spent[2]),
    }, ',') .. ';'
  end
  return table.concat(parts)
end

local function parse_balance(text)
  local first, last, si, sc, ri, rc, since, leaves, days, rule, day_first, day_last, ti, tc = string.match(text,
    '^(%d+):(%d*):(%d+):(%d+):(%d+):(%d+):(%d+):(%d*):([^:]*):([^:]*):(%d+):(%d+):(%d+):(%d+)$')
  return {
    first = time_of(first), last = time_of(last), spent = cost(si, sc), reserved = cost(ri, rc),
    since = time_of(since), leaves = time_of(leaves), days = parse_days(days), rule = rule,
    day_first = time_of(day_first), day_last = time_of(day_last), today = cost(ti, tc),
  }
end

local function balance_text(balance)
  local spent, reserved, today = balance.spent, balance.reserved, balance.today
  return table.concat({
    time_text(balance.first), time_text(balance.last), amount_text(spent[1]), amount_text(spent[2]),
    amount_text(reserved[1]), amount_text(reserved[2]), time_text(balance.since), time_text(balance.leaves),
    days_text(balance.days), balance.rule, time_text(balance.day_first), time_text(balance.day_last),
    amount_text(today[1]), amount_text(today[2]),
  }, ':')
end

-- Balance.opened
local function opened_balance(each, since)
  local first = math.max(each.first, since)
  return {
    first = first, last = each.last, spent = NOTHING, reserved = NOTHING, since = first, leaves = each.leaves,
    days = {}, rule = each.rule, day_first = math.max(each.day_first, since), day_last = each.day_last,
    today = NOTHING,
  }
end

local function day_of(balance, first)
  for _, day in ipairs(balance.days) do
    if day.first == first then return day end
  end
  return nil
end

local function counts(balance, first)
  if not balance.leaves then return balance.rule ~= '' and first >= balance.since end
  return balance.day_first == first or day_of(balance, first) ~= nil
end

local function is_nothing(value)
  return is_within(value, NOTHING)
end

-- From the oldest charge that counts to the next moment at which budget returns; `as_one`: that is when all is gone.
local function counted_window(balance, as_one)
  local first = balance.first
  if not balance.leaves then return math.min(first, balance.since), balance.last end
  for _, day in ipairs(balance.days) do first = math.min(first, day.first) end
  local pick, leaves = as_one and math.max or math.min, nil
  for _, day in ipairs(balance.days) do
    if not is_nothing(day.spent) then leaves = pick(leaves or day.leaves, day.leaves) end
  end
  if not leaves or not is_nothing(balance.today) then leaves = pick(leaves or balance.leaves, balance.leaves) end
  return first, math.max(leaves, balance.day_last)
end

local function balance_of(level)
  if balances[level] == nil then
    local text = redis.call('HGET', balances_key, level)
    balances[level] = text and parse_balance(text) or false
  end
  return balances[level]
end

local function load_balances()
  local names = request.path
  if #names == 0 then return end
  for index, text in ipairs(redis.call('HMGET', balances_key, unpack(names))) do
    balances[names[index]] = text and parse_balance(text) or false
  end
end

-- What was charged at a level on days that are over, {last, spent} by start, as it will be written.

local past = {}
local all_past_loaded = {}

local function past_key(level)
  return days_key .. ':' .. level
end

local function parse_past(text)
  local last, information, calls = string.match(text, '^(%d+),(%d+),(%d+)$')
  return {last = time_of(last), spent = cost(information, calls)}
end

local function past_day(level, first)
  past[level] = past[level] or {}
  local found = past[level][first]
  if found == nil then
    local text = redis.call('HGET', past_key(level), time_text(first))
    found = text and parse_past(text) or nil
    past[level][first] = found
  end
  return found
end

local DAY = 86400 * 1000000

-- Draft._change_day
local function change_day(level, first, change, value, last)
  local day = past_day(level, first) or {last = last or first + DAY, spent = NOTHING}
  day.spent, day.changed = change(day.spent, value), true
  past[level][first] = day
end

local function all_past(level)
  past[level] = past[level] or {}
  if not all_past_loaded[level] then
    local fields = redis.call('HGETALL', past_key(level))
    for index = 1, #fields, 2 do
      local first = time_of(fields[index])
      past[level][first] = past[level][first] or parse_past(fields[index + 1])
    end
    all_past_loaded[level] = true
  end
  return past[level]
end

-- A hold is {level, day start}.

local function add_reserved(holds, change, held)
  for _, hold in ipairs(holds) do
    local balance = balance_of(hold[1])
    if balance and tonumber(hold[2]) >= balance.since then balance.reserved = change(balance.reserved, held) end
  end
end

local function end_reservation(id, reservation)
  add_reserved(reservation.holds, taken, cost(reservation.information, reservation.calls))
  table.insert(ended, id)
end

-- Whether it takes something on some level; else it is no charge, and nothing is added.
local function spend(entry, holds)
  local own = cost(entry.information, entry.calls)
  local above = entry.shared_information and cost(entry.shared_information, entry.shared_calls) or own
  -- JournalEntry.takes_nothing
  local takes_nothing = is_nothing(own)
  for _, hold in ipairs(holds) do
    takes_nothing = takes_nothing and (hold[1] == entry.account or is_nothing(above))
  end
  if takes_nothing then return false end
  if unit_id == '' then unit_id = entry.unit_id end
  for _, hold in ipairs(holds) do
    local balance, first = balance_of(hold[1]), tonumber(hold[2])
    -- JournalEntry.cost_at
    local spent = hold[1] == entry.account and own or above
    if balance then
      -- Balance.charged
      if counts(balance, first) then
        balance.spent = added(balance.spent, spent)
        local day = balance.day_first ~= first and day_of(balance, first)
        if day then day.spent = added(day.spent, spent) end
      end
      if balance.day_first == first then
        balance.today = added(balance.today, spent)
      else
        change_day(hold[1], first, added, spent)
      end
    end
  end
  entry.holds = holds
  table.insert(journal, entry)
  return true
end

local function expire(id)
  local reservation = cjson.decode(redis.call('HGET', reservations_key, id))
  end_reservation(id, reservation)
  if reservation.forfeits == '1' then
    spend({
      kind = 'forfeited', account = reservation.account, information = reservation.information,
      calls = reservation.calls, unit_id = reservation.unit_id, request_id = reservation.request_id, release_id = '',
      query_id = reservation.query_id, time = reservation.expires_at,
    }, reservation.holds)
  end
end

-- Balance.on: begin another day, and return the one that has ended.
local function begin_day(balance, each)
  local first = math.max(each.day_first, currency_since)
  if balance.day_first >= first and now < balance.day_last then return nil end
  local start = now
  if now >= balance.day_last then
    start = math.max(first, balance.day_last)
  elseif balance.day_first < currency_since then
    start = first
  end
  local ended = {first = balance.day_first, last = math.min(balance.day_last, start), spent = balance.today}
  balance.day_first, balance.day_last, balance.today = start, math.max(each.day_last, start + 1), NOTHING
  return ended
end

-- Balance.rolled: bring to now what was made for the same rule; false: only the past days tell.
local function roll(balance, each, ended)
  if each.leaves then
    if not ended then return true end
    table.insert(balance.days, {first = ended.first, leaves = balance.leaves, spent = ended.spent})
    local sum, days = balance.today, {}
    for _, day in ipairs(balance.days) do
      if now < day.leaves or day.first >= each.counts_from then
        sum = added(sum, day.spent)
        table.insert(days, day)
      end
    end
    balance.spent, balance.days, balance.leaves = capped(sum), days, each.leaves
    balance.first, balance.last = balance.day_first, balance.day_last
    return true
  end
  if not balance.last or now < balance.last then return true end
  if not ended or ended.last > each.first then return false end
  balance.first, balance.last, balance.since = each.first, each.last, each.first
  balance.spent, balance.reserved = NOTHING, NOTHING
  return true
end

local function is_ended(id)
  for _, each in ipairs(ended) do
    if each == id then return true end
  end
  return false
end

-- Draft._reserved
local function reserved_at(level, since)
  local sum = NOTHING
  local fields = redis.call('HGETALL', reservations_key)
  for index = 1, #fields, 2 do
    if not is_ended(fields[index]) then
      local reservation = cjson.decode(fields[index + 1])
      for _, hold in ipairs(reservation.holds) do
        if hold[1] == level and tonumber(hold[2]) >= since then
          sum = added(sum, cost(reservation.information, reservation.calls))
        end
      end
    end
  end
  return capped(sum)
end

-- Past days whose last charges leave a sliding window at a time that only a calendar tells: by level, then by start.
local unknown = {}
local is_unknown = false

-- Balance.rebuilt
local function rebuilt(balance, each, since)
  local spent, first, days = balance.today, math.min(math.max(each.counts_from, since), balance.day_first), {}
  local leaving = request.leaving and request.leaving[each.level] or {}
  for start, day in pairs(all_past(each.level)) do
    if day.last > each.counts_from and start >= since then
      spent, first = added(spent, day.spent), math.min(first, start)
      if each.leaves then
        local text = leaving[time_text(start)]
        if not text then
          unknown[each.level] = unknown[each.level] or {}
          unknown[each.level][time_text(start)], is_unknown = time_text(day.last), true
        end
        table.insert(days, {first = start, leaves = time_of(text or '0'), spent = day.spent})
      end
    end
  end
  table.sort(days, function(one, other) return one.first < other.first end)
  local made = {
    first = math.max(each.first, since), last = each.last, spent = capped(spent), since = first, leaves = each.leaves,
    days = days, rule = each.rule, day_first = balance.day_first, day_last = balance.day_last, today = balance.today,
    reserved = reserved_at(each.level, first),
  }
  if each.leaves then made.first, made.last = balance.day_first, balance.day_last end
  return made
end

local function same(a, b)
  return is_within(a, b) and is_within(b, a)
end

-- Draft._rebuilt
local function rebuild(balance, each)
  local every = rebuilt(balance, each, 0)
  if every.since >= currency_since then return every end
  local fresh = rebuilt(balance, each, currency_since)
  local has_old = not (same(every.spent, fresh.spent) and same(every.reserved, fresh.reserved))
  return has_old and each.mode == 'enforce' and every or fresh
end

-- What to change before the window: balances, by the day that has ended.
local function bring_to_now(each)
  local balance = balance_of(each.level)
  if not balance then
    balances[each.level] = opened_balance(each, 0)
    table.insert(new_levels, each.level)
    return
  end
  local over = begin_day(balance, each)
  if over then change_day(each.level, over.first, added, over.spent, over.last) end
  if balance.rule ~= each.rule or not roll(balance, each, over) then
    balances[each.level] = rebuild(balance, each)
  end
end

-- Draft._refresh_without_limit
local function refresh_without_limit(each)
  local balance = balance_of(each.level)
  if not balance then
    local day_first = math.max(each.day_first, currency_since)
    balances[each.level] = {
      first = day_first, last = each.day_last, spent = NOTHING, reserved = NOTHING, since = 0, days = {},
      rule = '', day_first = day_first, day_last = each.day_last, today = NOTHING,
    }
    table.insert(new_levels, each.level)
    return
  end
  local over = begin_day(balance, each)
  if over then change_day(each.level, over.first, added, over.spent, over.last) end
  if not over and not balance.leaves then return end
  balance.first, balance.last, balance.spent = balance.day_first, balance.day_last, NOTHING
  balance.leaves, balance.days, balance.rule = nil, {}, ''
end

local function is_of_the_last_currency(balance)
  return balance.since < currency_since
end

-- Draft._refresh
local function refresh(each)
  local is_new = not balance_of(each.level)
  bring_to_now(each)
  local balance = balances[each.level]
  if not is_of_the_last_currency(balance) then return end
  -- Draft._in_new_currency
  if is_nothing(balance.spent) and is_nothing(balance.reserved) then
    local opened = opened_balance(each, currency_since)
    if not is_new then opened.day_first, opened.day_last = balance.day_first, balance.day_last end
    balances[each.level] = opened
  elseif each.mode == 'track' then
    balances[each.level] = rebuild(balance, each)
  end
end

load_balances()
local due = redis.call('ZRANGEBYSCORE', ends_key, '-inf', time_text(now), 'LIMIT', 0, request.expired_at_once)
for _, id in ipairs(due) do expire(id) end
for _, each in ipairs(levels) do refresh(each) end
for _, each in ipairs(others) do refresh_without_limit(each) end
if is_unknown then return {'leaving', cjson.encode(unknown)} end

local leaf = #levels > 0 and balances[levels[#levels].level] or {}

-- What the rules ask of the draft.

-- LevelStatus
local function status(each)
  local balance = balances[each.level]
  if is_of_the_last_currency(balance) then return each.maximum, NOTHING end
  return balance.spent, balance.reserved
end

local function used(each)
  return added(status(each))
end

local function left(each, sum)
  local found = {}
  for unit in ipairs(UNITS) do
    found[unit] = above(sum[unit], each.maximum[unit]) and {0, 0} or minus(each.maximum[unit], sum[unit])
  end
  return found
end

local function unspent(each)
  return left(each, (status(each)))
end

local function remaining(each)
  return left(each, used(each))
end

-- Draft.has_room
local function has_room(asked)
  for _, each in ipairs(levels) do
    local balance = balances[each.level]
    if is_of_the_last_currency(balance) then return false end
    if not is_within(added(added(balance.spent, balance.reserved), asked), each.maximum) then return false end
  end
  return true
end

-- LevelStatus.shortfalls of all levels: `has` is what a level has for the cost, unspent or remaining.
local function shortfalls(asked, has)
  local missing = {}
  for _, each in ipairs(levels) do
    -- What others hold on a level above the account is their affair.
    local seen = each.level == request.account and remaining(each) or unspent(each)
    for unit, name in ipairs(UNITS) do
      if each.mode == 'enforce' and above(asked[unit], has(each)[unit]) then
        local balance = balances[each.level]
        local _, ends = counted_window(balance, is_of_the_last_currency(balance))
        ends = time_text(ends)
        table.insert(missing, {each.depth, name, amount_text(asked[unit]), amount_text(seen[unit]), ends})
      end
    end
  end
  return missing
end

-- rules.shortage
local function shortage(asked)
  local spent = shortfalls(asked, unspent)
  if #spent > 0 then return {'exhausted', time_text(now), spent} end
  local held = shortfalls(asked, remaining)
  return #held > 0 and {'held', time_text(now), held} or nil
end

-- Cost.fits_above
local function fits_above(asked, counted)
  local sum = added(counted, asked)
  return not above(sum[1], LARGEST) and not above(sum[2], LARGEST)
end

-- Draft.can_count
local function can_count(asked)
  for _, each in ipairs(others) do
    local balance = balances[each.level]
    if not fits_above(asked, added(balance.today, balance.reserved)) then return false end
  end
  return true
end

local function admission(asked)
  local fits = can_count(asked)
  if not has_room(asked) then
    local refusal = shortage(asked)
    if refusal then return refusal end
    for _, each in ipairs(levels) do fits = fits and fits_above(asked, used(each)) end
  end
  return not fits and {'refused', 'SUM_OVERFLOW'} or nil
end

-- Every charge writes this: it is put together without the JSON library, which takes three times as long, and nothing
-- in it is a text that comes from outside.
local function charged_text(information, calls, already_paid)
  local found = {}
  for index, each in ipairs(levels) do
    local balance = balances[each.level]
    local is_old = is_of_the_last_currency(balance)
    local first, last = counted_window(balance, is_old)
    local spent, reserved = balance.spent, balance.reserved
    if is_old then spent, reserved = each.maximum, NOTHING end
    found[index] = '["' .. table.concat({
      each.depth, amount_text(each.maximum[1]), amount_text(each.maximum[2]), each.mode,
      time_text(first), time_text(last), amount_text(spent[1]), amount_text(spent[2]),
      amount_text(reserved[1]), amount_text(reserved[2]),
    }, '","') .. '"]'
  end
  local charged = table.concat({'charged', information, calls, already_paid}, '","')
  return '["' .. charged .. '",[' .. table.concat(found, ',') .. ']]'
end

local function holds()
  local found = {}
  for index, level in ipairs(request.path) do found[index] = {level, time_text(balances[level].day_first)} end
  return found
end

local function named_reservation()
  local text = redis.call('HGET', reservations_key, request.reservation_id)
  local reservation = text and cjson.decode(text)
  return reservation and reservation.account == request.account and reservation or nil
end

local function is_open(reservation)
  return reservation ~= nil and now < tonumber(reservation.expires_at)
end

-- What was paid for is kept with the start of its span, and free while that counts.

local function payment_key(kind, id)
  return paid_key .. '//' .. kind .. '//' .. id
end

local function paid_in(kind, id)
  if id == '' then return nil end
  local first, release_id = string.match(redis.call('GET', payment_key(kind, id)) or '', '^(%d+):(.*)$')
  local is_free = first and tonumber(first) >= currency_since and counts(leaf, tonumber(first))
  return is_free and release_id or nil
end

local function recorded_release(query_id)
  return paid_in('query', query_id) or ''
end

local function is_paid(release_id)
  return paid_in('release', release_id) ~= nil
end

-- In any span, however old: only a refund takes that away.
local function was_paid(release_id)
  return redis.call('EXISTS', payment_key('release', release_id)) == 1
end

-- The only place that writes.

local function milliseconds(keep_until)
  return string.format('%.0f', math.ceil((keep_until - now) / 1000))
end

local function write_payment(payment, expires_in)
  local function write(kind, id)
    local text = time_text(payment.span) .. ':' .. payment.release_id
    if expires_in then
      redis.call('SET', payment_key(kind, id), text, 'PX', expires_in)
    else
      redis.call('SET', payment_key(kind, id), text)
    end
  end
  write('release', payment.release_id)
  if payment.query_id ~= '' then write('query', payment.query_id) end
end

-- Each command costs more than what it writes, and Lua cannot pass on any number of arguments.
local FIELDS_AT_ONCE = 200

local function write_balances()
  local fields = {}
  for level, balance in pairs(balances) do
    if balance then
      table.insert(fields, level)
      table.insert(fields, balance_text(balance))
    end
    if #fields == FIELDS_AT_ONCE then
      redis.call('HSET', balances_key, unpack(fields))
      fields = {}
    end
  end
  if #fields > 0 then redis.call('HSET', balances_key, unpack(fields)) end
end

-- Levels with a balance below them; a balance never goes but with a move, to another name below the same level.
local function parents_key()
  return string.sub(root_key, 1, -5) .. 'parents'
end

local function write_parents()
  for _, level in ipairs(new_levels) do
    local parent = string.match(level, '^(.*)/')
    if parent then redis.call('SADD', parents_key(), parent) end
  end
end

local function write_past()
  for level, days in pairs(past) do
    for first, day in pairs(days) do
      if day.changed then
        local text = table.concat({time_text(day.last), amount_text(day.spent[1]), amount_text(day.spent[2])}, ',')
        redis.call('HSET', past_key(level), time_text(first), text)
      end
    end
  end
end

local function write_reservations()
  for _, id in ipairs(ended) do
    redis.call('HDEL', reservations_key, id)
    redis.call('ZREM', ends_key, id)
  end
  if opened then
    redis.call('HSET', reservations_key, request.reservation_id, cjson.encode(opened))
    redis.call('ZADD', ends_key, opened.expires_at, request.reservation_id)
  end
end

local function write_journal()
  for _, entry in ipairs(journal) do
    local more = {}
    if (entry.policy_statement or '') ~= '' then more = {'policy_statement', entry.policy_statement} end
    if entry.shared_information then
      table.insert(more, 'shared_information')
      table.insert(more, entry.shared_information)
      table.insert(more, 'shared_calls')
      table.insert(more, entry.shared_calls)
    end
    if entry.reason then
      table.insert(more, 'reason')
      table.insert(more, entry.reason)
    end
    redis.call('XADD', journal_key, '*', 'kind', entry.kind, 'account', entry.account,
      'information', entry.information, 'calls', entry.calls, 'unit_id', entry.unit_id,
      'request_id', entry.request_id, 'release_id', entry.release_id, 'query_id', entry.query_id,
      'time', entry.time, 'holds', cjson.encode(entry.holds), unpack(more))
  end
end

local has_more_lapsed = #due > 0 and #due == tonumber(request.expired_at_once)

-- All but the outcome.
local function write_state()
  redis.call('HSET', root_key, 'unit_id', unit_id, 'last_time', time_text(now), 'limits_version', limits_version)
  if next_unit_id ~= '' or currency_since > 0 or root[5] then
    redis.call('HSET', root_key, 'currency_since', time_text(currency_since), 'next_unit_id', next_unit_id,
      'next_since', time_text(next_since))
  end
  write_balances()
  write_parents()
  write_past()
  write_reservations()
  write_journal()
end

-- `outcome` is a list, or the text of one that is no refusal. rules._kept_until: what takes no budget is `over` at a
-- time, and forgotten as soon after it as a refusal.
local function finish(outcome, payment, over)
  local is_text = type(outcome) == 'string'
  local kind = is_text and '' or outcome[1]
  local text = is_text and outcome or cjson.encode(outcome)
  if has_more_lapsed and (kind == 'exhausted' or kind == 'held') then
    -- What more has lapsed is still counted as held: the request is sent again.
    write_state()
    return {'again', ''}
  end
  if kind == 'held' then
    if #ended > 0 then write_state() end
    return {'held', text}
  end
  local is_refusal = kind == 'refused' or kind == 'exhausted'
  local ends = leaf.leaves or leaf.last
  local keep_paid = (ends or now) + tonumber(request.retention)
  if is_refusal then over = now end
  local keep_until = over and over + tonumber(request.short_retention) or keep_paid
  -- administration.refusal: one that touches no balance leaves the root as it was.
  if not is_refusal or #levels + #others > 0 then write_state() end
  if payment then write_payment(payment, ends and milliseconds(keep_paid)) end
  redis.call('HSET', outcome_key, 'keep_until', time_text(keep_until), 'fingerprint', request.fingerprint,
    'outcome', text)
  redis.call('PEXPIRE', outcome_key, milliseconds(keep_until))
  return {'decided', text}
end

if request.closed then return finish({'refused', 'ACCOUNT_CLOSED'}) end
