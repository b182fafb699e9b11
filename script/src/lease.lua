-- LEASE: a sorted set of slots by holder. A member is '\2' and the holder's id; its time is when the lease lapses.

function make.LEASE()
  make_zset()
  lease = {
    arity = WORDS.LEASE, needs = NEEDS.LEASE, options = OPTIONS.GO_LEASE, unknown = LIST.GO_LEASE, clause_options = OPTIONS.LEASE,

    -- parse reads limit, ttl, id and slots. A call for 0 slots has the quantity -1: it takes nothing, but differs from a peek.
    parse = function(r)
      r.limit = word.integer(ARGV[r.first], INTEGER.Limit)
      r.period = word.time(ARGV[r.first + 1], r.unit, 1,
        TEXT.TTLNotTime,
        TEXT.TTLRange)
      r.member = lease.member(ARGV[r.first + 2])
      r.slots = r.quantity_word and word.integer(ARGV[r.quantity_word], INTEGER.Slots) or 1.0
      r.quantity = r.slots > 0 and r.slots or -1
      word.read_weight(r)
    end,

    member = function(id)
      if #id > BOUND.id then go.fail(TEXT.IDTooLong) end
      return '\2' .. id
    end,

    check = function(e)
      if not e.time or string.sub(e.member, 1, 1) ~= '\2' or #e.member > 1 + BOUND.id then go.fail(TEXT.ForeignLeases) end
      return e
    end,

    -- counts reports whether an entry counts slots, and isn't a lease.
    counts = function(e) return match(e.member, '^[\3\4]') end,

    load = function(r)
      local now, newest = go.now, zset.newest(r.key, 2)
      r.used, r.lapsed, r.fresh = 0, {}, not newest
      if not newest then return end
      local score = go.call(r.key, 'ZSCORE', r.member)
      local own = score and lease.check(zset.entries({r.member, score})[1])
      if own then
        r.own_slots = 1 -- held or lapsed
        if own.time > now then r.own = own.time end
      end
      for _, e in ipairs(newest) do -- one of the two newest leases isn't the caller's
        if lease.counts(e) then break end
        lease.check(e)
        if e.member ~= r.member then
          if e.time > now then r.latest = e.time end
          break
        end
      end
      lease.count(r)
    end,

    -- count finds lapsed leases, no more than the call may still remove, and counts the slots in use.
    count = function(r)
      local most = math.max(math.min(128, go.to_clear), 1)
      local first = zset.oldest(r.key, '+inf', go.now, 1)
      if first[1] and lease.counts(first[1]) then return make_slots().load(r) end -- all that count come first
      r.lapsed = first[1] and zset.oldest(r.key, '+inf', go.now, most) or first
      for i = 1, #r.lapsed do lease.check(r.lapsed[i]) end
      if not r.latest then
        r.used = r.own and 1 or 0
      elseif #r.lapsed == most then
        r.used = go.call(r.key, 'ZCOUNT', '-inf', '(' .. format('%d', -go.now))
      else
        r.used = go.call(r.key, 'ZCARD') - #r.lapsed
      end
      if #r.lapsed == most then r.rest = true end
      if go.to_clear == 0 then r.lapsed = {} end
      go.to_clear = go.to_clear - #r.lapsed
    end,

    -- lapse returns when so many slots have lapsed.
    lapse = function(r, await)
      local e
      if r.extra then
        for _, lapse in ipairs(slots.lapses(r)) do
          if lapse.used <= r.used - await then return lapse.time end
        end
      elseif await == 1 then
        e = zset.first(r.key, go.now)
      else
        local rank = format('%d', r.used - await)
        e = zset.entries(go.call(r.key, 'ZRANGE', rank, rank, 'WITHSCORES'))[1]
      end
      return e and lease.check(e).time > go.now and e.time or r.latest
    end,

    -- lost reports whether no wait helps a call, because the id holds nothing.
    lost = function(r) return not r.own and (r.limiter.frees or r.slots == 0) end,

    judge = function(r, quantity)
      local now, free = go.now, r.limit - r.used
      local v = {limited = false, granted = 0, remaining = math.max(free, 0), retry = 0, reset = 0, renewed = r.own and 1 or 0}
      r.v = v
      if quantity == 0 then
        v.reset = math.max((r.latest or 0) - now, (r.own or 0) - now, 0)
      elseif not r.own and (r.slots == 0 or r.slots > free) then
        v.limited, v.reset = true, math.max((r.latest or 0) - now, 0)
        if r.slots > 0 and r.slots <= r.limit then v.retry = lease.lapse(r, r.slots - free) - now end
      else
        r.next, v.granted = now + r.period * 1000, r.own and 0 or r.slots
        v.remaining, v.reset = math.max(free - v.granted, 0), math.max(r.latest or 0, r.next) - now
      end
      return v
    end,

    -- apply removes lapsed leases and, unless the call is denied, adds, renews or gives back the caller's.
    apply = function(r, denied)
      local adds, drops, frees = {r.key, 'ZADD'}, {r.key, 'ZREM'}, not denied and r.limiter.frees
      local takes = not denied and not frees
      if takes then adds[3], adds[4] = format('%d', -r.next), r.member end
      if frees then drops[3] = r.member end
      for i = 1, #r.lapsed do
        local member = r.lapsed[i].member
        if not takes or member ~= r.member then drops[#drops + 1] = member end
      end
      local takes_new = takes and not r.own
      if r.extra or takes_new and r.slots > 1 then
        make_slots().change(r, takes_new, frees, adds, drops)
        if not r.latest and not r.rest and not takes_new and (frees or not r.own) then return write(false, {r.key, 'DEL'}) end
      end
      if #adds > 2 then write(r.fresh, adds) end
      if #drops > 2 then write(false, drops) end
      if takes then
        go.expire(r.key, r.fresh, up(math.max(r.latest or 0, r.next), 1000), r.period / 4)
      elseif frees and (r.latest or r.rest) then
        lease.expire(r.key, r.latest or 0)
      end
    end,

    -- expire makes a key expire after the latest of the leases that stay after a release. All may have lapsed.
    expire = function(key, latest)
      latest = math.max(latest, go.now)
      go.expire(key, false, up(latest, 1000), (latest - go.now) / 4000)
    end,
  }
  return lease
end
