-- GCRA. KEYS[1]: the limiter. ARGV: max_burst, count, period in s, quantity.
-- Times are µs since the Unix epoch. A double holds them exactly.
local limit = tonumber(ARGV[1]) + 1
local interval = tonumber(ARGV[3]) * 1000000 / tonumber(ARGV[2])
local quantity = tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
local new = tat + quantity * interval
local room = now + limit * interval - new
if room < 0 then
  local retry = quantity > limit and -1 or math.ceil(-room / 1000000)
  return {1, limit, math.floor((room + quantity * interval) / interval), retry, math.ceil((tat - now) / 1000000)}
end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
return {0, limit, math.floor(room / interval), -1, math.ceil((new - now) / 1000000)}
