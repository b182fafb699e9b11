-- SHARE: a clause with it is a tenant of the clauses r.fronts, which have the shared limits or are tenants too: of the clause before
-- it, or if a LEASE clause shares units, of the whole run of clauses of units.

local function make_shares()
  -- last returns when the last units of a tenant lapse.
  local function last(r)
    if r.kind == 'QUOTA' then return r.ends end
    if r.kind == 'LEASE' then return math.max(r.latest or 0, r.own or 0, r.extra and r.rest and go.now + 1 or 0) end
    return r.newest and r.newest.time + r.us or 0
  end

  -- later returns the units in use at an instant if no call comes, and when the first of them lapse.
  local function later(r, at)
    if at >= last(r) then return 0.0, 0.0 end
    if r.kind == 'QUOTA' then return r.used, r.ends end
    if r.extra then return slots.later(r, at) end
    local first = zset.first(r.key, r.kind == 'LEASE' and at or at - r.us)
    if not first then return 0.0, 0.0 end
    if r.kind == 'WINDOW' then return window.use(r, window.entry(first)), first.time + r.us end
    lease.check(first)
    return at == go.now and r.used or go.call(r.key, 'ZCOUNT', '-inf', '(' .. format('%d', -at)), first.time
  end

  -- wait returns how long it takes until units fit the first clause: at the stored rate if the call stores no other one.
  local function wait(r, units)
    if units > r.limit then return math.huge end
    local a, b = rates.span(r.rate, r.limit - units)
    if r.held == 0 and not rates.shorter(a, b, r.used, r.used_fraction) then return 0.0 end
    local stores = r.settle or r.v.limited and r.v.store
    if r.carried and not stores then return math.max(throttle.drains_to(r, r.limit - units), r.held) end
    return math.max(rates.ceil(rates.minus(r.rate, r.used, r.used_fraction, a, b)), r.held)
  end

  -- fits reports whether a clause will admit units at an instant if no call comes.
  local function fits(r, units, at)
    if r.kind == 'THROTTLE' then return wait(r, units) <= (at - go.now) * 1000 end
    local used = later(r, at)
    if used + units > r.limit then return false end
    units = r.weight and up(used + units, r.weight) or 0
    for i = 1, units > 0 and #r.fronts or 0 do
      if not fits(r.fronts[i], units, at) then return false end
    end
    return true
  end

  -- narrow bisects a log. It returns bounds within which no units lapse. The clause admits units at the upper one and not at
  -- the lower one, as before.
  local function narrow(r, units, low, high)
    local at, found = low, math.min(high, last(r))
    for _ = 1, 64 do
      if low >= found then return low, high end
      local used, lapse = later(r, at)
      if used == 0 or lapse >= high then
        found = at
      elseif fits(r, units, lapse) then
        high, found = lapse, at
      else
        low = lapse
      end
      at = low + div(found - low, 2)
    end
    go.fail(TEXT.Damaged)
  end

  -- await returns how long it takes, in us, until a clause admits units, within bounds. Between two lapses its use stays, so the
  -- clauses before it must admit so many units: they are asked next.
  local function await(r, units, low, high)
    if r.kind == 'THROTTLE' then
      local ns = wait(r, units)
      return ns < (high - go.now) * 1000 and up(ns, 1000) or high - go.now
    end
    low, high = narrow(r, units, low, high)
    local used = later(r, low)
    if not r.weight or used + units > r.limit then return high - go.now end
    local longest = low - go.now
    units = up(used + units, r.weight)
    for _, f in ipairs(r.fronts) do
      if not fits(f, units, low) then longest = math.max(longest, await(f, units, low, high)) end
    end
    return longest
  end

  -- least returns the least number of the clauses that have what a tenant shares.
  local function least(r, number)
    local n = math.huge
    for i = 1, #r.fronts do n = math.min(n, number(r.fronts[i])) end
    return n
  end

  share = {
    -- most returns the most that a clause can ever have left.
    most = function(r) return r.weight and math.min(r.limit, r.weight * least(r, share.most)) or r.limit end,

    -- left returns the units that a clause had left before the call.
    left = function(r)
      if r.kind == 'THROTTLE' then return r.held > 0 and 0.0 or throttle.left_units(r, r.used, r.used_fraction) end
      return math.max((r.weight and math.min(r.limit, r.weight * least(r, share.left)) or r.limit) - r.used, 0)
    end,

    -- remains sets what a tenant has left after the call.
    remains = function(r, replies, n, granted)
      local left = replies[n - 1][3]
      for i = n - #r.fronts, n - 2 do left = math.min(left, replies[i][3]) end
      replies[n][3] = math.max(math.min(r.limit, r.weight * left) - r.used - granted, 0)
    end,

    -- judge judges by the share of a tenant whose own limit has judged. It reports whether the share denies, but not forever.
    judge = function(r, replies, n)
      local v, granted, short = r.v, 0, false
      if not v.limited and v.renewed ~= 1 then granted = v.granted end
      if v.renewed ~= 1 and r.quantity >= 0 and not r.opts.FORCE and r.used + r.quantity > r.weight * least(r, share.left) then
        v, short = r.limiter.judge(r, 0, false), not all_of.never(r)
        v.limited, v.retry = true, 0
        replies[n] = go.verdict(r, v)
      end
      share.remains(r, replies, n, granted)
      return short
    end,

    -- judge_all judges by the shares. If one of them denies units, changed rates of the clauses before it are stored as if
    -- these had denied: usage must drain as the wait says. Where a LEASE clause shares units, they are peeks, and store nothing.
    judge_all = function(clauses, replies, may_lock)
      local short, asks = {}, 0
      for n = 1, #clauses do
        local r = clauses[n]
        short[n] = r.weight and share.judge(r, replies, n)
        if short[n] and r.quantity > 0 and not r.holds then asks = n end
      end
      for n = 1, asks - 1 do
        local r = clauses[n]
        r.settle = r.kind == 'THROTTLE' and not r.is_held
        if r.settle and replies[n][1] ~= 0 then replies[n] = go.verdict(r, throttle.judge(r, r.quantity, may_lock)) end
      end
      for n = 1, #clauses do
        local r = clauses[n]
        local us = short[n] and await(r, r.quantity, go.now, math.huge)
        if us == math.huge then go.fail(TEXT.Damaged) end
        if us then replies[n][4] = up(us, r.opts.MS and 1000 or 1e6) end
      end
    end,
  }
end
