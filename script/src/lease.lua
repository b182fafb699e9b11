-- LEASE: a sorted set of slots by holder. A member is '\2' and the holder's id; its time is when the lease lapses.

function make.LEASE()
  make_zset()
  lease = {
    arity = WORDS.LEASE, needs = NEEDS.LEASE, options = OPTIONS.GO_LEASE, unknown = LIST.GO_LEASE, clause_options = OPTIONS.LEASE,

    parse = function(r)
      r.limit = word.integer(ARGV[r.first], INTEGER.Limit)
      r.period = word.time(ARGV[r.first + 1], r.unit, 1,
        TEXT.TTLNotTime,
        TEXT.TTLRange)
      r.member = '\2' .. ARGV[r.first + 2]
      if #r.member > 1 + BOUND.id then go.fail(TEXT.IDTooLong) end
      word.read_weight(r)
    end,

    check = function(e)
      if not e.time or string.sub(e.member, 1, 1) ~= '\2' or #e.member > 1 + BOUND.id then go.fail(TEXT.ForeignLeases) end
      return e
    end,

    load = function(r)
      local now, newest = go.now, zset.newest(r.key, 2)
      r.used, r.own, r.latest, r.lapsed, r.fresh = 0, nil, nil, {}, not newest
      if not newest then return end
      local score = go.call(r.key, 'ZSCORE', r.member)
      local own = score and lease.check(zset.entries({r.member, score})[1])
      if own and own.time > now then r.own = own.time end
      for _, e in ipairs(newest) do -- one of the two newest leases isn't the caller's
        lease.check(e)
        if e.member ~= r.member then
          if e.time > now then r.latest = e.time end
          break
        end
      end
      r.lapsed = zset.oldest(r.key, now)
      for _, e in ipairs(r.lapsed) do lease.check(e) end
      if not r.latest then
        r.used = r.own and 1 or 0
      elseif #r.lapsed == 128 then
        r.used = go.call(r.key, 'ZCOUNT', '-inf', '(' .. format('%d', -now))
      else
        r.used = go.call(r.key, 'ZCARD') - #r.lapsed
      end
    end,

    -- lapse returns when so many slots have lapsed.
    lapse = function(r, await)
      local e
      if await == 1 then
        e = zset.first(r.key, go.now)
      else
        local rank = format('%d', r.used - await)
        e = zset.entries(go.call(r.key, 'ZRANGE', rank, rank, 'WITHSCORES'))[1]
      end
      return e and lease.check(e).time > go.now and e.time or r.latest
    end,

    judge = function(r, quantity)
      local now = go.now
      local v = {limited = false, granted = 1, remaining = 0, retry = 0, reset = 0, renewed = r.own and 1 or 0}
      r.v = v
      if quantity == 0 then
        v.remaining, v.reset = math.max(r.limit - r.used, 0), math.max((r.latest or 0) - now, (r.own or 0) - now, 0)
      elseif not r.own and r.used >= r.limit then
        v.limited, v.reset, v.retry = true, r.latest - now, lease.lapse(r, r.used - r.limit + 1) - now
      else
        r.next = now + r.period * 1000
        v.remaining, v.reset = math.max(r.limit - r.used - (r.own and 0 or 1), 0), math.max(r.latest or 0, r.next) - now
      end
      return v
    end,

    apply = function(r, denied)
      local drops = {r.key, 'ZREM'}
      for _, e in ipairs(r.lapsed) do
        if denied or e.member ~= r.member then drops[#drops + 1] = e.member end
      end
      if not denied then
        zset.save(r, r.next, r.member, drops, r.fresh, math.max(r.latest or 0, r.next))
      elseif #drops > 2 then
        write(false, drops)
      end
    end,
  }
  return lease
end

-- release gives slots back.
local function release()
  go.limiter('LEASE')
  local key, members, seen = KEYS[1], {}, {}
  if argc > 1 + BOUND.ids then go.fail(TEXT.TooManyIDs) end
  for i = 2, argc do
    if #ARGV[i] > BOUND.id then go.fail(TEXT.IDTooLong) end
    members[i - 1] = '\2' .. ARGV[i]
  end
  local newest = zset.newest(key, 1)
  if not newest then return 0 end
  go.read_clock()
  local scores, going, held, now = go.call(key, 'ZMSCORE', spread(members, 1)), {}, 0, go.now
  for i = 1, #members do
    if scores[i] and not seen[members[i]] then
      local e = lease.check(zset.entries({members[i], scores[i]})[1])
      going[#going + 1], seen[members[i]] = e, true
      if e.time > now then held = held + 1 end
    end
  end
  if #going == 0 then
    lease.check(newest[1])
    return 0
  end
  table.sort(going, function(a, b) return a.time > b.time or a.time == b.time and a.member < b.member end)
  local drops = {key, 'ZREM'}
  for i = 1, #going do drops[i + 2] = going[i].member end
  write(false, drops)
  for _, e in ipairs(zset.newest(key, #going + 1) or {}) do
    if not seen[e.member] then -- the latest that stays
      local last = math.max(lease.check(e).time, now)
      go.expire(key, false, up(last, 1000), (last - now) / 4000)
      break
    end
  end
  return held
end
