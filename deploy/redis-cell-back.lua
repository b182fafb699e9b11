--[[ docs/swap.md runs this in one line: it turns limiters into strings of redis-cell, and names the hashes that are none. ]]
local cursor, count, left = '0', 0, {}
local function tat(key)
 if redis.call('HLEN', key) > 160 then return end
 local fields, last, found = redis.call('HGETALL', key), '', {}
 for i = 1, #fields, 2 do
  local n, value = tonumber(fields[i]), fields[i + 1]
  if not n or n < 0 or n > 159 or not string.find(value, '^-?%d+$') then return end
  found[n] = true
  if n >= 128 or n % 4 == 0 then
   if #value ~= 19 then return end
   if value > last then last = value end
  end
 end
 return found[0] and found[1] and last
end
repeat
 local found = redis.call('SCAN', cursor, 'COUNT', 1000, 'TYPE', 'hash')
 cursor = found[1]
 for _, key in ipairs(found[2]) do
  local last = tat(key)
  if last then
   redis.call('SET', key, last, 'KEEPTTL')
   count = count + 1
  else
   left[#left + 1] = key
  end
 end
until cursor == '0'
return {count, left}
