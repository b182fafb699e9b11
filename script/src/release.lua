-- RELEASE: what gives slots back, as a clause and as a command.

function make.RELEASE()
  local l = go.limiter('LEASE')
  return {
    arity = WORDS.RELEASE, needs = NEEDS.RELEASE, clause_options = OPTIONS.RELEASE, frees = true, load = l.load, apply = l.apply,

    parse = function(r) r.member, r.quantity = lease.member(ARGV[r.first]), -1 end,

    judge = function(r, quantity)
      local gives = r.own and quantity ~= 0
      r.limit = gives and r.own_slots or 0
      local last = math.max(r.latest or 0, not gives and r.own or 0)
      r.v = {limited = not r.own, granted = -r.limit, remaining = 0, retry = 0, reset = math.max(last - go.now, 0)}
      return r.v
    end,
  }
end

-- release runs GO.RELEASE.
local function release()
  go.limiter('LEASE')
  local key, members, seen = KEYS[1], {}, {}
  if argc > 1 + BOUND.ids then go.fail(TEXT.TooManyIDs) end
  for i = 2, argc do members[i - 1] = lease.member(ARGV[i]) end
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
  local adds, drops, latest = {key, 'ZADD'}, {key, 'ZREM'}, nil
  for i = 1, #going do drops[i + 2] = going[i].member end
  for _, e in ipairs(zset.newest(key, #going + 1) or {}) do
    if not seen[e.member] then -- the latest that stays, if it is a lease
      latest = not lease.counts(e) and lease.check(e).time or nil
      break
    end
  end
  if make_slots().release(key, going, adds, drops) and not latest then
    write(false, {key, 'DEL'})
    return held
  end
  if #adds > 2 then write(false, adds) end
  write(false, drops)
  if latest then lease.expire(key, latest) end
  return held
end
