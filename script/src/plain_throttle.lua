-- Plain calls come first: they have no option but UPTO, LOCKOUT, ALIGN and MS, or are GO.ALL of such clauses. They cost a
-- quarter of what the general part costs: they make few tables, and one function for each kind. A call that turns out not to be
-- plain begins there again: nothing is written before everything is judged.

local kind, ro, all, denied = false, false, name == 'GO.ALL', false
if name == 'GO.THROTTLE' or name == 'CL.THROTTLE' then
  kind = 'THROTTLE'
elseif name == 'GO.QUOTA' then
  kind = 'QUOTA'
elseif name == 'GO.WINDOW' then
  kind = 'WINDOW'
elseif name == 'GO.LEASE' or all then
  kind = 'LEASE'
elseif name == 'GO.THROTTLE_RO' or name == 'GO.QUOTA_RO' or name == 'GO.WINDOW_RO' or name == 'GO.ALL_RO' then
  kind, ro, all = string.sub(name, 4, -4), true, name == 'GO.ALL_RO'
end
if #KEYS == 0 then kind, all = false, false end

-- A plain function decides about n units at KEYS[1]; s and ns are the clock. It returns nothing if the call isn't plain. Else it
-- returns the reply, with times in 1/per us; what was left and in use before the call; per; and the write of what it admits: a
-- list of the key, the command and its words, whether the key is new, from which ms on it may expire, and how many ms later it
-- must. Periods are in ms. The functions share no locals, because each of them would cost more than a call.

-- plain_throttle is also given, and returns, what is known of a hash if a further clause is about it.
local plain_throttle = (kind == 'THROTTLE' or all) and function(s, ns, hash, further, limit, count, period, n, upto, lockout)
  local format, span, per = string.format, period * 1e6, 1.0
  limit, count = limit + 1, count + 0.0
  if limit > 1e12 or count < 1 or count > 1e12 or span < count or span > 2 ^ 53 or n > limit and (not upto or n > 1e12)
    or n == 0 and (further or hash) then
    return
  end
  local interval = span / count -- in which a unit drains, in 1/per ns
  if span % count > 0 then
    local a, b = span, count
    while b > 0 do
      local rest = a % b -- not in one assignment: some interpreters do its parts one after another
      a = b
      b = rest
    end
    interval, per = span / a, count / a
  end
  local capacity = limit * interval
  if capacity >= 2 ^ 53 then return end

  local cell, f0, f1, f2, f3, state = 0, '0', '1', '2', '3', nil
  if hash then
    cell = hash.cell
    f0, f1, f2, f3 = format('%d', 4 * cell), format('%d', 4 * cell + 1), format('%d', 4 * cell + 2), format('%d', 4 * cell + 3)
  end
  if per == 1 then
    state = redis.pcall('HMGET', KEYS[1], f0, f1)
  else
    state = redis.pcall('HMGET', KEYS[1], f0, f1, f2, f3)
  end
  local fields, known = hash and hash.fields or redis.pcall('HLEN', KEYS[1]), (hash and hash.known or 0) + (per == 1 and 2 or 4)
  local stored = interval % 1e9 == 0 and format('%d', interval / 1e9) or format('%d', -interval)
  local used, fraction, fresh = 0.0, 0.0, fields == 0
  if not fresh then
    if state[2] ~= stored or per > 1 and state[4] ~= format('%d', per) or not further and fields ~= known then return end
    local seconds, rest = string.match(state[1] or '', '^([1-9]%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d%d%d%d)$')
    if per > 1 then fraction = string.match(state[3] or '', '^[1-9]%d*$') or state[3] == '0' and 0.0 end
    if not seconds or not fraction then return end
    fraction, used = fraction + 0.0, (seconds - s) * 1e9 + (rest - ns)
    if used >= (2 ^ 53 - capacity) / per - 1 or fraction >= per then return end
    if used < 0 then used = 0.0 else used = used * per + fraction end
  elseif state.err then
    return
  end

  local limited, asked, wait, write, from, slack = 0, n, nil, nil, nil, nil
  if upto and n > 0 then
    asked = capacity - used
    asked = asked > interval and (asked - asked % interval) / interval or 1.0
    if asked > n then asked = n end
  end
  local after = used + asked * interval
  if after > capacity then
    if lockout then return end -- it may begin
    limited, wait, after, asked = 1, after - capacity, used, 0
  elseif n > 0 then
    if asked < n then wait = after + interval - capacity end
    fraction = after % per
    local rest = (after - fraction) / per + ns
    local seconds = s + (rest - rest % 1e9) / 1e9
    rest = rest % 1e9
    local tat, full = format('%d%09d', seconds, rest), capacity % per > 0 and capacity / per + 1 or capacity / per
    if tat == state[1] then return end
    if fraction > 0 then rest = rest + 1 end
    from = seconds * 1000 + (rest - rest % 1e6) / 1e6 + (rest % 1e6 > 0 and 1 or 0)
    slack = (full < span and full or span) / 4e6
    write = hash and hash.write
    if write then
      write[#write + 1], write[#write + 2] = f0, tat
      if fresh then write[#write + 1], write[#write + 2] = f1, stored end
    else -- with room for two more words: it is dear to make a list longer
      write = {KEYS[1], 'HSET', f0, tat, fresh and f1 or nil, fresh and stored or nil, nil, nil}
    end
    if per > 1 then
      fraction = format('%d', fraction)
      if fraction ~= state[3] then write[#write + 1], write[#write + 2] = f2, fraction end
      if fresh then write[#write + 1], write[#write + 2] = f3, format('%d', per) end
    end
    if hash and hash.from then
      from, slack = from > hash.from and from or hash.from, slack < hash.slack and slack or hash.slack
    end
  end
  if further then
    hash, write = {cell = cell + 1, fields = fields, known = known, write = write, from = from, slack = slack}, nil
  end
  local room, room0 = capacity - after, capacity - used
  room = room < 0 and 0 or (room - room % interval) / interval
  room0 = room0 < 0 and 0 or (room0 - room0 % interval) / interval
  return {limited, limit, room, wait or -1, after, upto and asked or nil}, room0, used, per * 1000, write, fresh, from, slack, hash
end
