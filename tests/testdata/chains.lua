-- Runs the script with chains of SHARE over full sets of leases, and prints how many commands a denied call runs by the number
-- of SHARE clauses, and how many instructions it takes.
local run = assert(loadfile(arg[1]))
local NOW = 1800000000000000
math.randomseed(tonumber(os.getenv('SEED')) or 1)

local counting = true
local sets, calls -- sets by key: times in µs, the latest first

local function entries(set, from, to)
  local list = {}
  for i = from, math.min(to, #set) do
    list[#list + 1], list[#list + 2] = '\2' .. i, string.format('%d', -set[i])
  end
  return list
end

-- after returns how many leases lapse after a time.
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
  ZRANGE = function(set, from, to) return entries(set, from + 1, to + 1) end,
  ZREVRANGEBYSCORE = function(set, from)
    local n = from == '+inf' and 0 or after(set, -string.match(from, '-?%d+$'))
    return n > 0 and entries(set, n, n) or {}
  end,
  ZCOUNT = function(set, _, to) return after(set, -string.match(to, '-?%d+$')) end,
  ZCARD = function(set) return #set end,
  ZSCORE = function() return false end,
  PEXPIRETIME = function() return -1 end,
}
local function call(command, key, ...)
  counting, calls = false, calls + 1
  local reply = replies[command](sets[key], ...)
  counting = true
  return reply
end
redis = {call = call, pcall = call, error_reply = function(text) return {err = text} end}

for links = 1, 4 do
  local most_calls, most = 0, 0
  for _ = 1, 5 do
    sets, KEYS, ARGV, calls = {}, {'l0'}, {'GO.ALL', 'LEASE', '1000', '1h', 'me'}, 0
    for k = 0, links do
      local set = {}
      for i = 1, math.random(700, 999) do set[i] = NOW + math.random(1, 10 ^ math.random(7, 11)) end
      table.sort(set, function(a, b) return a > b end)
      sets['l' .. k] = set
      if k > 0 then
        KEYS[k + 1] = 'l' .. k
        for _, word in ipairs({'KEY', 'l' .. k, 'LEASE', '1000', '1h', 'me', 'SHARE', '1'}) do ARGV[#ARGV + 1] = word end
      end
    end
    local n = 0
    debug.sethook(function() n = counting and n + 1 or n end, '', 1)
    local reply = run()
    debug.sethook()
    assert(not reply.err and reply[1] == 1, reply.err)
    most_calls, most = math.max(most_calls, calls), math.max(most, n)
  end
  print(string.format('%d: %d commands, %d instructions', links, most_calls, most))
  assert(most_calls <= 300 * links and most <= 30000 * links, 'too many')
end
