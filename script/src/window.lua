-- WINDOW: a sorted set. A member is '\1' and the total of all units so far, then ':' and the entry's own units, if these
-- aren't 1, then ':' and a bound of the units in use, if units were given back: all in base 36. A total is modulo 2^64, in two
-- limbs: high * LIMB + low.

function make.WINDOW()
  make_zset()
  local LIMB, TURN_HIGH, TURN_LOW = 3656158440062976, 5045, 1424743591837696 -- 36^10; 2^64 in limbs
  local function damaged() go.fail(TEXT.Damaged) end

  local function base36(n)
    local text, digits = '', '0123456789abcdefghijklmnopqrstuvwxyz'
    repeat
      local d = n % 36
      text, n = string.sub(digits, d + 1, d + 1) .. text, (n - d) / 36
    until n == 0
    return text
  end

  -- number reads a canonical number of base 36.
  local function number(text)
    if text ~= '0' and not match(text, '^[1-9a-z][0-9a-z]*$') or #text > 13 then return nil end
    local high, low = tonumber(string.sub(text, 1, -11), 36) or 0, tonumber(string.sub(text, -10), 36)
    if high > TURN_HIGH or high == TURN_HIGH and low >= TURN_LOW then return nil end
    return high + 0.0, low + 0.0
  end

  local function carried(high, low)
    if low < 0 then return high - 1, low + LIMB end
    if low >= LIMB then return high + 1, low - LIMB end
    return high, low
  end

  -- plus_total adds a number, perhaps below 0, to a total.
  local function plus_total(total, n)
    local high, low = carried(total.high, total.low + n)
    if high > TURN_HIGH or high == TURN_HIGH and low >= TURN_LOW then
      high, low = carried(high - TURN_HIGH, low - TURN_LOW)
    elseif high < 0 then
      high, low = carried(high + TURN_HIGH, low + TURN_LOW)
    end
    return {high = high, low = low}
  end

  -- between returns a - b of two totals, which is exact below 2^53.
  local function between(a, b)
    local high, low = a.high - b.high, a.low - b.low
    if high * LIMB + low >= 2 ^ 63 then
      high, low = high - TURN_HIGH, low - TURN_LOW
    elseif high * LIMB + low < -2 ^ 63 then
      high, low = high + TURN_HIGH, low + TURN_LOW
    end
    return high * LIMB + low
  end

  -- part numbers the 120th parts of all periods.
  local function part(time, us)
    local rest = time % us
    local n = div(rest, 25) * 3 + div(rest % 25 * 3, 25) -- rest * 120 / 1000
    return div(time, us) * 120 + div(n, us / 1000)
  end

  -- lapse returns the time of the first entry whose total has reached a total, by bisection.
  local function lapse(r, total)
    if between(r.oldest, total) >= 0 then return r.oldest.time end
    local low, found, time = r.oldest.time, r.newest.time - 1, r.newest.time
    for _ = 1, 64 do
      if low >= found then break end
      local middle = low + div(found - low, 2)
      local e = zset.first(r.key, middle) or damaged()
      if between(window.entry(e), total) >= 0 then found, time = middle, e.time else low = e.time end
    end
    return time
  end

  -- append sets the entry that takes units.
  local function append(r, quantity)
    local newest, time, own = r.newest, go.now, r.opts.EXACT or r.limit <= 120 and not r.opts.FORCE
    if newest then time = math.max(time, newest.time) end
    r.next = plus_total(newest or {high = 0, low = 0}, quantity)
    r.next.time, r.next.weight = time, quantity
    if r.used < (r.logged or 0) and r.oldest then r.next.cap = r.used + quantity end
    if newest and (time == newest.time or not own and part(time, r.us) == part(newest.time, r.us)) then
      r.share, r.next.weight = true, quantity + math.min(newest.weight, r.used)
    end
  end

  -- drop adds the members that no longer count: at most 128, each checked first.
  local function drop(r, list)
    local newest, lapsed = r.newest, go.now - r.us
    if not newest then return end
    for _, e in ipairs(zset.oldest(r.key, '+inf', newest.cap and math.max(lapsed, newest.time - 1) or lapsed, 128)) do
      local n = between(newest, window.entry(e))
      if n <= 0 and e.member ~= newest.member then damaged() end
      if not (e.time <= lapsed or newest.cap and n >= newest.cap) then return end
      if not (r.share and e.member == newest.member) then list[#list + 1] = e.member end
    end
  end

  window = {
    arity = WORDS.WINDOW, needs = NEEDS.WINDOW, has_units = true,
    options = OPTIONS.GO_WINDOW, unknown = LIST.GO_WINDOW, clause_options = OPTIONS.WINDOW,

    parse = function(r)
      r.limit = word.integer(ARGV[r.first], INTEGER.Limit)
      word.read(r)
    end,

    -- entry reads an entry, which must be one of ours.
    entry = function(e)
      local total, own, cap = match(e.member, '^\1([0-9a-z]+):([0-9a-z]+):([0-9a-z]+)$')
      if not total then total, own = match(e.member, '^\1([0-9a-z]+):([0-9a-z]+)$') end
      if not total then total = match(e.member, '^\1([0-9a-z]+)$') end
      local high, low = number(total or '')
      local high2, low2 = number(own or '1')
      local high3, low3 = number(cap or '0')
      if not e.time or e.time > RANGE - BOUND.period * 1000 or not high or not high2 or not high3 or own == '0' or own == '1' and not cap
        or high2 * LIMB + low2 > 2 ^ 62 or high3 * LIMB + low3 > 2 ^ 62 then
        go.fail(TEXT.ForeignWindow)
      end
      e.high, e.low, e.weight, e.cap = high, low, high2 * LIMB + low2, cap and high3 * LIMB + low3
      return e
    end,

    load = function(r)
      local now = go.now
      r.us, r.used, r.newest, r.oldest = r.period * 1000, 0.0, nil, nil
      local newest = zset.newest(r.key, 1)
      r.newest = newest and window.entry(newest[1])
      if not newest or r.newest.time <= now - r.us then return end
      r.oldest = window.entry(zset.first(r.key, now - r.us) or damaged())
      r.used, r.logged = window.use(r, r.oldest)
    end,

    -- use returns the units in use, and those logged, from an entry on.
    use = function(r, oldest)
      local n = between(r.newest, oldest)
      if oldest.time > r.newest.time or n < 0 or n >= 2 ^ 62 then damaged() end
      n = n + oldest.weight
      return r.newest.cap and math.min(n, r.newest.cap) or n, n
    end,

    judge = function(r, quantity)
      local now, newest = go.now, r.newest
      if r.used >= RANGE then go.out_of_range() end
      local v = go.count(r, quantity)
      r.next, r.share, r.v = newest, false, v
      if v.granted < 0 then
        r.next, r.share = {high = newest.high, low = newest.low, time = newest.time, weight = newest.weight, cap = v.used}, true
      elseif v.granted > 0 then
        append(r, v.granted)
      end
      if v.await then
        local total, time = plus_total(r.next, v.await - v.used), r.next.time
        if newest and between(newest, total) >= 0 and r.oldest then
          time = lapse(r, total)
          if r.share and time == newest.time then time = r.next.time end
        end
        v.retry = time + r.us - now
      end
      v.reset = v.used > 0 and r.next.time + r.us - now or 0
      return v
    end,

    apply = function(r)
      if not r.v.store then return end
      local length = r.v.granted < 0 and r.v.used == 0 and go.call(r.key, 'ZCARD')
      if length and length <= 128 then
        local all = zset.oldest(r.key, '+inf', RANGE, 128)
        for _, e in ipairs(all) do window.entry(e) end
        if #all ~= length then go.fail(TEXT.ForeignWindow) end
        return write(false, {r.key, 'DEL'})
      end
      local next, drops = r.next, {r.key, 'ZREM', r.share and r.newest.member or nil}
      local member = '\1' .. (next.high > 0 and base36(next.high) .. string.sub('000000000' .. base36(next.low), -10) or base36(next.low))
      if next.weight ~= 1 or next.cap then member = member .. ':' .. base36(next.weight) end
      if next.cap then member = member .. ':' .. base36(next.cap) end
      drop(r, drops)
      write(not r.newest, {r.key, 'ZADD', format('%d', -next.time), member})
      if #drops > 2 then write(not r.newest, drops) end
      go.expire(r.key, not r.newest, up(next.time + r.us, 1000), r.period / 4)
    end,
  }
  return window
end
