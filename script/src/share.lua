-- SHARE: a clause with it is a tenant of the clause before it, r.front, which is the shared limit or a tenant too.

local function make_shares()
  -- last returns when the last units of a tenant lapse.
  local function last(r)
    if r.kind == 'QUOTA' then return r.ends end
    if r.kind == 'LEASE' then return math.max(r.latest or 0, r.own or 0) end
    return r.newest and r.newest.time + r.us or 0
  end

  -- later returns the units in use at an instant if no call comes, and when the first of them lapse.
  local function later(r, at)
    if at >= last(r) then return 0.0, 0.0 end
    if r.kind == 'QUOTA' then return r.used, r.ends end
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
    while r.kind ~= 'THROTTLE' do
      local used = later(r, at)
      if used + units > r.limit then return false end
      units = r.weight and up(used + units, r.weight) or 0
      if units == 0 then return true end
      r = r.front
    end
    return wait(r, units) <= (at - go.now) * 1000
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

  -- await returns how long it takes until a tenant's own limit and its share admit its quantity, in units of the reply. Between
  -- two lapses its use stays, so the clause before it must admit so many units: it is asked next.
  local function await(r)
    local now, unit, low, high, units = go.now, r.opts.MS and 1000 or 1e6, go.now, math.huge, r.quantity
    local ns = math.huge
    while r do
      if r.kind == 'THROTTLE' then
        ns = wait(r, units)
        break
      end
      low, high = narrow(r, units, low, high)
      local used = later(r, low)
      if not r.weight or used + units > r.limit then break end
      units, r = up(used + units, r.weight), r.front
    end
    if ns < (high - now) * 1000 then return up(ns, unit * 1000) end
    if high == math.huge then go.fail(TEXT.Damaged) end
    return up(high - now, unit)
  end

  share = {
    -- most returns the most that a clause can ever have left.
    most = function(r) return r.weight and math.min(r.limit, r.weight * share.most(r.front)) or r.limit end,

    -- left returns the units that a clause had left before the call.
    left = function(r)
      if r.kind == 'THROTTLE' then return r.held > 0 and 0.0 or throttle.left_units(r, r.used, r.used_fraction) end
      return math.max((r.weight and math.min(r.limit, r.weight * share.left(r.front)) or r.limit) - r.used, 0)
    end,

    -- remains sets what a tenant has left after the call.
    remains = function(r, replies, n, granted)
      replies[n][3] = math.max(math.min(r.limit, r.weight * replies[n - 1][3]) - r.used - granted, 0)
    end,

    -- judge judges by the share of a tenant whose own limit has judged. It reports whether the share denies, but not for ever.
    judge = function(r, replies, n)
      local v, granted, short = r.v, 0, false
      if not v.limited and v.renewed ~= 1 then granted = v.granted end
      if v.renewed ~= 1 and r.quantity >= 0 and not r.opts.FORCE and r.used + r.quantity > r.weight * share.left(r.front) then
        v, short = r.limiter.judge(r, 0, false), not all_of.never(r)
        v.limited, v.retry = true, 0
        replies[n] = go.verdict(r, v)
      end
      share.remains(r, replies, n, granted)
      return short
    end,

    -- judge_all judges by the shares. If one of them denies units, changed rates of the clauses before it are stored as if
    -- these had denied: usage must drain as the wait says.
    judge_all = function(clauses, replies, may_lock)
      local short, asks = {}, 0
      for n = 1, #clauses do
        local r = clauses[n]
        short[n] = r.weight and share.judge(r, replies, n)
        if short[n] and r.quantity > 0 then asks = n end
      end
      for n = 1, asks - 1 do
        local r = clauses[n]
        r.settle = true
        if r.kind == 'THROTTLE' and replies[n][1] ~= 0 then replies[n] = go.verdict(r, throttle.judge(r, r.quantity, may_lock)) end
      end
      for n = 1, #clauses do
        if short[n] then replies[n][4] = await(clauses[n]) end
      end
    end,
  }
end
