-- Runs the script with a redis.call that replies anything of the right shape. Fails if a run takes too many instructions (more
-- are allowed for each lapsed lease beyond the first 129, which are at most 1,024), ends
-- otherwise than with a reply or an error reply, or replies a number that is not whole.
local run = assert(loadfile(arg[1]))
local MOST, EACH, random, longest, more = 30000, 150, math.random, 0, 0
math.randomseed(tonumber(os.getenv('SEED')) or 1)

local function of(list) return list[random(#list)] end

local numbers = {'0', '1', '-1', '7', '60', '999', '1000000', '9007199254740992', '9007199254740993', '9223372036854775807',
  '9223372036854775808', '-9223372036854775808', '99999999999999999999999', 'x', '', '1.5', '1e400', '1800000000000000000',
  '1800000060000000000', '1800000000000000001', '1900000000000000000', '3153600000', '-3153599999999999999', 'nan', 'inf'}
local scores = {'2', '400', '1000000000000', '-1800000000000000', '-1799999999999999', '-1800000000000001', '1', '0', '-1', 'inf', '-inf', 'nan', '-9007199254740992',
  '-1e300', '-1800000000000000.5', '-5846400000000000'}
local members = {'\3a', '\3', '\4', '\2b', '\1', '\0011', '\0012:2', '\001zzzzzzzzzz:zzzzzzzzzz', '\0013w5e11264sgse', '\0013w5e11264sgse:1:0', '\001zzzzzzzzzz:2:zzzzzzzzzzz',
  '\0010', '\0019:9:9', '\1A', '\2a', '\2', 'x', '', '\1:', '\0011:1', '\001zzzzzzzzzzz:8', '\001a:5:3'}
local strings = {'', 'x', '5@1800000060000000000', '1000000000000000@1800000060000000000', '9@9007199254740992000', '1800000000000000000',
  '1900000000000000000', '9223372036854775807', '9223372036854775808', '99999999999999999@1800000060000000000'}

local function entries(n)
  local list = {}
  for i = 1, random(0, n) do
    list[2 * i - 1], list[2 * i] = of(members), of(scores)
  end
  return list
end

local wrong = {err = 'WRONGTYPE Operation against a key holding the wrong kind of value'}
local replies = {
  TIME = function() return {'1800000000', '0'} end,
  HLEN = function() return of({0, 2, 2, 4, 4, 3, 5, 6, 8, 160, 1000000, wrong}) end,
  HMGET = function(...)
    local list = {}
    for i = 1, select('#', ...) do list[i] = random(4) > 1 and of(numbers) end
    if random(2) == 1 then list[1], list[2] = '1800000060000000000', of({'60', '2', '-1', '86400', '-3153599999999999999'}) end
    return list
  end,
  GETRANGE = function() return random(9) > 1 and of(strings) or wrong end,
  PEXPIRETIME = function() return of({-2, -1, 1800000000000, 9007199254740992}) end,
  EXISTS = function() return random(0, 1) end,
  ZCARD = function() return of({0, 1, 2, 128, 129, 1000000}) end,
  ZCOUNT = function() return of({0, 1, 128, 1000000}) end,
  ZSCORE = function() return random(2) == 1 and of(scores) end,
  ZRANGE = function(_, last) return random(9) > 1 and entries(last == '1' and 2 or 9) or wrong end,
  ZREVRANGEBYSCORE = function(_, _, _, _, _, n)
    local list = entries(tonumber(n))
    more = more + math.max(#list / 2 - 129, 0) * EACH
    return list
  end,
  ZMSCORE = function(...)
    local list = {}
    for i = 1, select('#', ...) do list[i] = random(2) == 1 and of(scores) end
    return list
  end,
}
local function call(command, key, ...)
  for i = 1, select('#', ...) do assert(type(select(i, ...)) == 'string', 'an argument is not a string') end
  return replies[command] and replies[command](...) or 1
end
redis = {call = call, pcall = call, error_reply = function(text) return {err = text} end}

local function quantity() return of({'', '', ' 1', ' 0', ' -1', ' -1000000000001', ' 1000000000001', ' 17', ' 9007199254740993'}) end
local function rate() return of({'0', '15', '999999999999'}) .. ' ' .. of({'1', '7', '30', '1000000000000', '999999999989'}) .. ' ' ..
  of({'60', '1ms', '90d', '36500d', '7s', '9007199254740992'}) .. quantity() end
local function windowed() return of({'5', '121', '1000000000000'}) .. ' ' .. of({'60', '1ms', '36500d', '1h'}) .. quantity() end
local function chain(clause)
  local text = ''
  for i = 1, random(4) do text = text .. ' KEY l' .. i .. ' ' .. clause end
  return text
end
local function slots() return of({'', '0', '1', '2', '400', '1000000000000'}) end
local function hold() -- two runs of clauses of units, each with its leases
  local runs = {}
  for i = 1, 2 do
    local units = of({'THROTTLE 15 30 60 0 THROTTLE 99 7 1h 0', 'QUOTA 9 60 0', 'WINDOW 100 1h 0 KEY w' .. i .. ' WINDOW 121 60 0 SHARE 3'})
    runs[i] = units .. ' KEY h' .. i .. ' LEASE ' .. of({'9', '1000000000000'}) .. ' 60 a ' .. slots() .. ' SHARE 1'
  end
  return 'GO.ALL ' .. table.concat(runs, ' KEY u ')
end
local function any()
  return of({
    'GO.THROTTLE ' .. rate() .. of({'', ' UPTO', ' FORCE', ' RAISE', ' RESERVE 36500d', ' RESERVE 5', ' LOCKOUT 9'}), 'CL.THROTTLE ' .. rate(),
    'GO.WINDOW ' .. windowed() .. of({'', ' UPTO', ' FORCE', ' RAISE', ' EXACT'}), 'GO.QUOTA ' .. windowed() .. of({'', ' UPTO', ' FORCE', ' RAISE', ' ALIGN 1h'}),
    'GO.QUOTA 5 ' .. of({'1mo', '1200mo'}) .. ' ALIGN ' .. of({'27d', '-27d', '+01:00'}), 'GO.LEASE 2 60 a', 'GO.LEASE ' .. of({'2', '1000000000000'}) .. ' 60 a ' .. slots(), 'GO.RELEASE a b a',
    'GO.ALL THROTTLE ' .. rate() .. ' THROTTLE ' .. rate() .. ' LOCKOUT 5', 'GO.ALL WINDOW ' .. windowed() .. of({'', ' FORCE'}),
    'GO.ALL ' .. of({'THROTTLE ' .. rate(), 'QUOTA ' .. windowed()}) .. ' KEY l WINDOW ' .. windowed() .. ' SHARE 3 KEY m WINDOW ' .. windowed() .. ' SHARE 1',
    hold(), 'GO.ALL RELEASE a KEY q QUOTA ' .. windowed() .. of({'', ' FORCE'}),
    'GO.ALL LEASE 2 60 a' .. chain('LEASE 9 60 a SHARE 1'), 'GO.ALL WINDOW ' .. windowed() .. chain('WINDOW 1000000000000 1h 1 SHARE 2'),
  })
end

local function check(reply, call)
  for _, n in ipairs(type(reply) == 'table' and reply or {reply}) do
    if type(n) == 'table' then check(n, call) else
      assert(type(n) == 'number' and n == math.floor(n), call .. ': ' .. tostring(n))
      assert(not math.type or math.type(n) == 'integer', call .. ': a float')
    end
  end
end

for _ = 1, tonumber(os.getenv('CALLS')) or 20000 do
  local line, n = any(), 0
  more = 0
  KEYS, ARGV = {'k'}, {}
  for word in string.gmatch(line, '%S+') do
    if ARGV[#ARGV] == 'KEY' then KEYS[#KEYS + 1] = word end
    ARGV[#ARGV + 1] = word
  end
  debug.sethook(function()
    n = n + 1000
    if n > MOST + more then error(line .. ': too many instructions') end
  end, '', 1000)
  local ok, reply = pcall(run)
  debug.sethook()
  assert(ok, line .. ': ' .. tostring(type(reply) == 'table' and reply.err or reply))
  if type(reply) ~= 'table' or not reply.err then check(reply, line) end
  longest = math.max(longest, n - more)
end
print('at most ' .. longest .. ' instructions')
