-- The first part of scripts that need the time: that of Redis in microseconds, or what replaces it in tests. Microseconds
-- are exact in a double until the year 2255.

local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end
