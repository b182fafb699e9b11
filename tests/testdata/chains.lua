-- Runs the script with chains of SHARE over full sets of leases, and with holds of what windows have left. Prints how many
-- commands and instructions denied calls take, by the number of SHARE clauses and by that of windows.
local run = assert(loadfile(arg[1]))
local NOW, HOUR = 1800000000000000, 3600000000
math.randomseed(tonumber(os.getenv('SEED')) or 1)

local counting = true
local sets, calls -- by key: times in µs, the latest first; begins, of members, and whether leases have several slots

local function base36(n)
  local digit = string.sub('0123456789abcdefghijklmnopqrstuvwxyz', n % 36 + 1, n % 36 + 1)
  return n < 36 and digit or base36(math.floor(n / 36)) .. digit
end

-- fill adds a key with a set of times from a time on.
local function fill(key, begins, n, from)
  local set = {begins = begins}
  for i = 1, n do set[i] = from + math.random(1, 10 ^ math.random(7, 9)) end
  table.sort(set, function(a, b) return a > b end)
  KEYS[#KEYS + 1], sets[key] = key, set
end

local function entries(set, from, to)
  local list = {}
  for i = from, to, from > to and -1 or 1 do
    list[#list + 1], list[#list + 2] = set.begins .. base36(#set + 1 - i), string.format('%d', -set[i])
  end
  return list
end

-- after returns how many times come after a time.
local function after(set, time)
  local low, high = 0, #set
  while low < high do
    local middle = math.floor((low + high + 1) / 2)
    if set[middle] > time then low = middle else high = middle - 1 end
  end
  return low
end

local replies = {
  TIME = function() return {'1800000000', '0'} end,
  ZRANGE = function(set, from, to)
    local past = tonumber(from) < 0 and #set or 0
    return entries(set, past + from + 1, math.min(past + to + 1, #set))
  end,
  ZREVRANGEBYSCORE = function(set, from, _, _, _, _, most)
    if from == '+inf' or from == '(0' then return from == '+inf' and set.several and {'\4', '0'} or {} end
    local n = after(set, -string.match(from, '-?%d+$'))
    return entries(set, n, math.max(n - most + 1, 1))
  end,
  ZCOUNT = function(set, _, to) return after(set, -string.match(to, '-?%d+$')) end,
  ZCARD = function(set) return set.several and 2 * #set + 1 or #set end,
  ZSCORE = function() return false end,
  ZMSCORE = function(_, ...)
    local list = {'0'}
    for i = 2, select('#', ...) do list[i] = '2' end
    return list
  end,
  PEXPIRETIME = function() return -1 end,
}
local function call(command, key, ...)
  counting, calls = false, calls + 1
  local reply = replies[command](sets[key], ...)
  counting = true
  return reply
end
redis = {call = call, pcall = call, error_reply = function(text) return {err = text} end}

-- most runs calls and checks how many commands and instructions they take. make fills the sets, and returns the words.
local function most(make, n, commands, instructions)
  local most_calls, most = 0, 0
  for _ = 1, 5 do
    sets, KEYS, ARGV, calls = {}, {}, {}, 0
    for word in string.gmatch('GO.ALL ' .. make(n), '%S+') do ARGV[#ARGV + 1] = word end
    local n = 0
    debug.sethook(function() n = counting and n + 1 or n end, '', 1)
    local reply = run()
    debug.sethook()
    assert(not reply.err and reply[1] == 1, reply.err)
    most_calls, most = math.max(most_calls, calls), math.max(most, n)
  end
  print(string.format('%d: %d commands, %d instructions', n, most_calls, most))
  assert(most_calls <= commands and most <= instructions, 'too many')
end

local function chain(links)
  fill('l0', '\2', math.random(700, 999), NOW)
  local words = 'LEASE 1000 1h me'
  for k = 1, links do
    fill('l' .. k, '\2', math.random(700, 999), NOW)
    words = words .. ' KEY l' .. k .. ' LEASE 1000 1h me SHARE 1'
  end
  return words
end

local function hold(windows)
  local words = ''
  for k = 1, windows do
    fill('w' .. k, '\1', 121, NOW - HOUR)
    words = words .. (k > 1 and ' KEY w' .. k or '') .. ' WINDOW 121 1h 0'
  end
  fill('h', '\2', 300, NOW)
  sets.h.several = true
  return words .. ' KEY h LEASE 1000 1h me ' .. math.random(121) .. ' SHARE 1'
end

for links = 1, 4 do most(chain, links, 300 * links, 30000 * links) end
for windows = 1, 31, 10 do most(hold, windows, 30 + 40 * windows, 30000 + 10000 * windows) end
