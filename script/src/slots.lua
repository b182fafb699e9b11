-- Leases of several slots. Such a lease has a second member, '\3' and the id, whose score is the number of slots. The score of
-- '\4' is the sum of slots - 2 over all of these. So the slots at a key are its members - 1 and that sum.

local function make_slots() -- few calls need it
  if slots then return slots end
  local function foreign() go.fail(TEXT.ForeignLeases) end

  -- number reads a score that counts something; nil if there is none.
  local function number(score, least, most)
    local n = score and (tonumber(score) or foreign())
    if n and not (n >= least and n <= most and n % 1 == 0) then foreign() end
    return n and n + 0.0
  end

  -- stays reports whether a key has more than n members '\3'. It says so if it meets a member that is too long, as the module does.
  local function stays(key, n)
    local found = 0
    for _, e in ipairs(zset.oldest(key, '+inf', -2, n + 2)) do -- one may be '\4'
      if #e.member > 1 + BOUND.id then return true elseif string.sub(e.member, 1, 1) == '\3' then found = found + 1 end
    end
    return found > n
  end

  -- settle writes the member '\4' when members '\3' go or come. It goes with the last of them, as the word at of drops; kept says
  -- that one stays.
  local function settle(key, old, new, gone, kept, adds, drops, at)
    if #gone > 0 and new <= 0 and not kept and not stays(key, #gone) then
      table.insert(drops, at, '\4')
    elseif new ~= old and new >= 0 then -- a damaged set may have a sum that is too small
      adds[#adds + 1], adds[#adds + 2] = format('%d', new), '\4'
    end
    for i = 1, #gone do drops[#drops + 1] = gone[i] end
  end

  slots = {
    -- of returns the sum, and for each of some leases the member '\3' and its score, if there is one; nil if there is no sum.
    of = function(key, leases)
      local names = {'\4'}
      for i, e in ipairs(leases) do names[i + 1] = '\3' .. string.sub(e.member, 2) end
      local scores = go.call(key, 'ZMSCORE', spread(names, 1))
      for i, e in ipairs(scores[1] and leases or {}) do
        e.count, e.counter = number(scores[i + 1], 2, BOUND.slots), names[i + 1]
      end
      return number(scores[1], 0, BOUND.slots)
    end,

    -- load counts the slots in use: all but those of lapsed leases. If more have lapsed than the call may remove, the slots of
    -- the rest count.
    load = function(r)
      local left, own = go.to_clear, r.own_slots and {member = r.member}
      local lapsed = zset.oldest(r.key, '(0', go.now, left + 1)
      r.lapsed, r.rest = lapsed, #lapsed > left
      if r.rest then lapsed[left + 1] = nil end
      go.to_clear = left - #lapsed
      for _, e in ipairs(lapsed) do lease.check(e) end
      if own then lapsed[#lapsed + 1] = own end
      r.extra = slots.of(r.key, lapsed) or foreign()
      r.used = go.call(r.key, 'ZCARD') - 1 + r.extra
      if own then
        lapsed[#lapsed] = nil
        r.own_slots, r.counted = own.count or 1, own
        if not r.own then r.used = r.used - r.own_slots end
      end
      for _, e in ipairs(lapsed) do
        if e.member == r.member then r.own_goes = true else r.used = r.used - (e.count or 1) end
      end
      if not r.latest and not r.rest then r.used = r.own and r.own_slots or 0 elseif r.used <= 0 then foreign() end
    end,

    -- lapses returns the next lapses, and what is in use from each on: at most 128, and one after which enough is free for every
    -- call, whose wait then ends there. If lapsed leases are left, the next call may find their slots free.
    lapses = function(r)
      if r.lapses then return r.lapses end
      local used, free = r.used, -2 ^ 50
      r.lapses = r.rest and {{time = go.now + 1, used = free}} or zset.oldest(r.key, '(' .. format('%d', -go.now), RANGE, 129)
      if r.rest then return r.lapses end
      slots.of(r.key, r.lapses)
      for i, e in ipairs(r.lapses) do
        used = used - (lease.check(e).count or 1)
        e.used = i <= 128 and used or free
      end
      return r.lapses
    end,

    -- later returns the slots in use at an instant, and when the next ones lapse.
    later = function(r, at)
      local all = slots.lapses(r)
      local low, high = 0, #all -- how many have lapsed by then
      while low < high do
        local middle = math.ceil((low + high) / 2)
        if all[middle].time <= at then low = middle else high = middle - 1 end
      end
      return low > 0 and all[low].used or r.used, all[low + 1] and all[low + 1].time or math.huge
    end,

    -- change changes the members that count when a call takes slots, frees them, or removes lapsed leases.
    change = function(r, takes, frees, adds, drops)
      local new, gone, several, own = r.extra or 0, {}, takes and r.slots > 1, r.counted and r.counted.count and r.counted
      local function drop(e)
        if not e.count then return end
        new, gone[#gone + 1] = new - e.count + 2, e.counter
      end
      for _, e in ipairs(r.lapsed) do
        if e.member ~= r.member then drop(e) end
      end
      if several then
        new = math.max(own and new - own.count + 2 or new, 0) + r.slots - 2
        adds[#adds + 1], adds[#adds + 2] = format('%d', r.slots), '\3' .. string.sub(r.member, 2)
      elseif own and (takes or frees or r.own_goes) then
        drop(own)
      end
      settle(r.key, r.extra, new, gone, several or r.own and not frees and own, adds, drops, frees and 4 or 3)
    end,

    -- release drops what counts the slots of leases that a call gives back. It reports whether there is a sum.
    release = function(key, leases, adds, drops)
      local extra, gone = go.call(key, 'ZCARD') > 2 and slots.of(key, leases), {} -- a lease, its slots, and their sum
      if not extra then return end
      local new = extra
      for _, e in ipairs(leases) do
        if e.count then new, gone[#gone + 1] = new - e.count + 2, e.counter end
      end
      settle(key, extra, new, gone, nil, adds, drops, #drops + 1)
      return true
    end,
  }
  return slots
end
