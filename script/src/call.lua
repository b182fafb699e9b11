-- The general part: all calls that aren't plain. Functions are fields of tables, because each local that functions share makes
-- all of them dearer. A table is made when a call needs it, and a function that few calls need is made inside its caller.

local function up(a, b) -- divides a >= 0 and rounds up
  local rest = a % b
  return (a - rest) / b + (rest > 0 and 1 or 0)
end

writes, late = {}, {}
local function write(fresh, list)
  local lists = fresh and late or writes
  lists[#lists + 1] = list
end

local function div(a, b) return (a - a % b) / b end -- rounds down

local go, word, rates, cells, throttle, zset, window, quota, slots, lease, share, all_of
local make = {} -- what makes the limiter of a kind, and then the limiter: what parses, loads, judges and applies

go = {
  now = 0, -- in µs
  to_clear = 1024, -- how many lapsed leases the call may still remove

  -- fail ends the call with an error. Of two errors in GO.ALL one of the range comes last.
  fail = function(text, range) error({text = text, range = range}, 0) end,
  out_of_range = function() go.fail('ERR a number is out of the range of the script: use the module', true) end,

  -- limiter returns what decides for a kind of limiter; nil if there is no such kind.
  limiter = function(kind)
    if type(make[kind]) == 'function' then make[kind] = make[kind]() end
    return make[kind]
  end,

  -- call runs a command on a key, which is moved to KEYS[1]: some proxies want a literal index in each call.
  call = function(key, command, ...)
    KEYS[1] = key
    local reply = redis.pcall(command, KEYS[1], ...)
    if type(reply) == 'table' and reply.err then go.fail(reply.err) end
    return reply
  end,

  -- expiry returns the expiry that a key needs, in ms, as a word; nil if the one that it has is good: from the ms from on, and
  -- at most slack ms later. A fresh key has none.
  expiry = function(key, fresh, from, slack)
    local to = from + (slack < 1000 and 1000 or slack - slack % 1)
    KEYS[1] = key
    local old = fresh and -2 or redis.pcall('PEXPIRETIME', KEYS[1])
    if type(old) == 'table' then
      if match(old.err, 'user') or match(old.err, 'ACL') then go.fail(old.err) end
      old = -2 -- other servers don't have the command
    end
    return (old < from or old > to) and format('%d', to) or nil
  end,

  expire = function(key, fresh, from, slack)
    local to = go.expiry(key, fresh, from, slack)
    if to then write(fresh, {key, 'PEXPIREAT', to}) end
  end,

  read_clock = function()
    local time = not now_s and redis.pcall('TIME')
    if time and time.err then
      if match(time.err, 'user') or match(time.err, 'ACL') then go.fail(time.err) end
      go.fail('ERR this server refuses TIME in a script (' .. time.err .. '): use the module')
    end
    if time then now_s, now_ns = time[1] + 0.0, time[2] * 1000.0 end
    go.now = now_s * 1e6 + now_ns / 1000
  end,

  -- new_request returns what the words of a limit say: first is the place in ARGV of the first one after its kind.
  new_request = function(kind, first, key, state)
    local limiter = go.limiter(kind)
    return {kind = kind, limiter = limiter, first = first, key = key, cell = 0, opts = {}, place = false, member = false,
      unit = 1000, quantity = 1.0, limit = 0, period = 0, used = 0.0, state = state, v = false, wrong = false, next = false,
      weight = false, settle = false}
  end,

  -- verdict returns the integers of a reply.
  verdict = function(r, v)
    local opts, unit = r.opts, (r.opts.MS and 1e6 or 1e9) / (r.kind == 'THROTTLE' and 1 or 1000) -- the others judge in µs
    local sixth = v.renewed
    if opts.UPTO or opts.RAISE then
      sixth = v.granted
    elseif opts.RESERVE then
      sixth = v.limited and -1 or up(v.wait, unit)
    end
    local reply = {v.limited and 1 or 0, r.limit, v.remaining, v.retry > 0 and up(v.retry, unit) or -1, up(v.reset, unit), sixth}
    if r.limiter.frees then reply.frees = true end
    return reply
  end,

  -- count judges by a number of units in use: v.used is that after the call. If v.await is set, the call has to wait until
  -- so many units have left.
  count = function(r, quantity)
    local opts, left, asked = r.opts, r.limit - r.used, quantity
    local v = {limited = false, granted = 0, remaining = 0, retry = 0, reset = 0, store = false, used = 0, await = false}
    if opts.RAISE then asked = math.max(quantity - r.used, 0) end
    if opts.UPTO and quantity > 0 then asked = math.min(quantity, math.max(left, 1)) end
    if opts.FORCE and asked > 0 and asked > BOUND.in_use - r.used then go.fail(TEXT.TooMuchInUse) end
    v.limited = asked >= 0 and asked > left and not opts.FORCE
    if not v.limited then v.granted = math.max(asked, -r.used) end
    if v.limited and asked <= r.limit then
      v.await = asked - left
    elseif v.granted > 0 and asked < quantity and not opts.RAISE then
      v.await = asked + 1 - left
    end
    v.used, v.store = r.used + v.granted, v.granted ~= 0
    v.remaining = math.max(r.limit - v.used, 0)
    return v
  end,

  -- one runs a call of one limiter.
  one = function(kind, redis_cell)
    local r = go.new_request(kind, 2, KEYS[1], {asked = 1})
    local limiter, rest, i, wrong = r.limiter, 2 + r.limiter.arity, nil, nil
    r.redis_cell = redis_cell
    if ARGV[rest] and (redis_cell or word.looks_numeric(ARGV[rest])) then
      r.quantity_word = rest
      rest = rest + 1
    end
    if rest <= argc then
      i, wrong = word.options(r, rest, limiter.options)
      if not wrong and i <= argc then
        local late = limiter.has_units and word.looks_numeric(ARGV[i])
        wrong = word.named(late and TEXT.QuantityLate or TEXT.UnknownOption, ARGV[i], limiter.unknown)
      end
      r.opts.MS = r.opts.MS or wrong and word.says_ms(rest)
      r.opts.FORCE = r.opts.FORCE or r.opts.RAISE -- which forces what is missing
      r.unit = r.opts.MS and 1 or 1000
    end
    if wrong then r.wrong = true end
    limiter.parse(r) -- the words from the left are judged first
    if wrong then go.fail(wrong) end
    go.read_clock()
    limiter.load(r)
    local v = limiter.judge(r, r.quantity, true)
    limiter.apply(r, v.limited)
    if limiter.finish then limiter.finish(r.state, r.key) end
    return go.verdict(r, v)
  end,
}
