-- gothrottle without the module: rate limits by one script, for servers that load no modules. docs/managed.md has more.
--
--   EVAL "$(cat gothrottle.lua)" 1 user:42 GO.THROTTLE 15 30 1m     the keys, then the command's words without its first key
--
-- It reads the server's clock and the keys in KEYS, and writes these keys only: each is a hash, a string or a sorted set, and
-- expires when nothing is in use any more. It calls TIME, and for a key EXISTS PEXPIRETIME HLEN HMGET GETRANGE ZRANGE ZCARD
-- ZREVRANGEBYSCORE ZSCORE ZMSCORE ZCOUNT; it writes by HSET HDEL SET ZADD ZREM DEL PEXPIREAT. It promises the module's replies
-- and errors, and an end: after 30,000 instructions at most, and as many for each SHARE, 10,000 for each clause that a hold shares,
-- and 150 for each of at most 1,024 lapsed leases. Everything is read and judged, and the user's permissions are asked for,
-- before the first write, so a call that fails has written nothing.
-- SHA256SUMS of each release has this file's sum; sha1sum prints the name by which EVALSHA knows it. Don't change this file:
-- go generate ./script makes it of script/src.

-- Numbers are doubles: each is whole and at most 2^53, or the call is an error. An instant is two numbers: seconds since the
-- Unix epoch, and ns. A length of time is ns and a fraction in 1/count ns.

local argc, name, format, match, whole = #ARGV, ARGV[1], string.format, string.match, math.tointeger
local RANGE = 9007199254740992 -- 2^53
local now_s, now_ns -- set by what reads the clock first; it is read once
local writes, late -- lists of the key, the command and its words; as in the module, keys that are made come late

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

-- plain_window reads the newest entry and the two oldest. If the first one that counts is another one, the call isn't plain.
local plain_window = (kind == 'WINDOW' or all) and function(s, ns, limit, period, n, upto)
  local now, us, limited, asked, wait = s * 1e6 + ns / 1000, period * 1000, 0, n, nil
  if us > 7e13 then return end

  -- read returns the total and the units of an entry; nothing if it isn't one, or has a bound.
  local function read(member)
    local total, own = string.match(member, '^\1([1-9a-z][0-9a-z]*)$'), '1'
    if not total then total, own = string.match(member, '^\1([1-9a-z][0-9a-z]*):([1-9a-z][0-9a-z]*)$') end
    if total and #total <= 10 and #own <= 10 and (own ~= '1' or #member == 1 + #total) then
      return tonumber(total, 36) + 0.0, tonumber(own, 36) + 0.0
    end
  end

  local newest = redis.pcall('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')
  if newest.err then return end
  local used, total, weight, at, fresh = 0.0, 0.0, 0.0, 0.0, #newest == 0
  local first, first_at, gone, also = 0.0, 0.0, nil, nil -- the total and the time of the first entry that counts
  if not fresh then
    total, weight = read(newest[1])
    at = -(tonumber(newest[2]) or 0.0)
    if not total or at <= 0 or at > now or at % 1 ~= 0 then return end
    local oldest = redis.pcall('ZRANGE', KEYS[1], '-1', '-1', 'WITHSCORES')
    local entry = oldest[1]
    first_at = -(tonumber(oldest[2]) or 0.0)
    if not entry or first_at < 0 or first_at % 1 ~= 0 then return end
    if first_at <= now - us then
      local second = redis.pcall('ZRANGE', KEYS[1], '-2', '-2', 'WITHSCORES')
      gone, entry, first_at = entry, second[1], -(tonumber(second[2] or -now) or 0.0)
      if entry and first_at <= now - us then also, entry = entry, nil end
      if not entry and (also or gone) ~= newest[1] then return end -- more has gone
      if gone ~= newest[1] and (read(gone) or total) >= total then return end
    end
    if entry then
      local own
      first, own = read(entry)
      if not first or first_at > at or first_at % 1 ~= 0 then return end
      used = total - first + own
      if first > total or used >= 2 ^ 53 then return end
    end
  end

  local write, from
  local room0, span0 = used < limit and limit - used or 0.0, used > 0 and at + us - now or 0.0
  if upto and n > 0 then asked = n < room0 and n or room0 > 1 and room0 or 1.0 end
  if used + asked > limit then
    if first - total < asked - limit then return end -- another entry has to lapse first
    limited, wait, asked = 1, first_at + us - now, 0
  elseif n > 0 then
    local share, next = at == now, total + n
    if asked < n or next >= 3656158440062976 then return end
    if limit > 120 and at > 0 and not share and at % us < now % us and now - at < us then -- in one 120th part of a period?
      local a, b = at % us * 120, now % us * 120
      share = (a - a % us) == (b - b % us)
    end
    local own = share and n + (weight < used and weight or used) or n
    local rest, member, digits = own > 1 and own or 0, '', '0123456789abcdefghijklmnopqrstuvwxyz'
    while rest > 0 do
      local d = rest % 36
      member, rest = string.sub(digits, d + 1, d + 1) .. member, (rest - d) / 36
    end
    rest, member = next, own > 1 and ':' .. member or ''
    while rest > 0 do
      local d = rest % 36
      member, rest = string.sub(digits, d + 1, d + 1) .. member, (rest - d) / 36
    end
    write, used, at, from = {KEYS[1], 'ZADD', string.format('%d', -now), '\1' .. member}, used + n, now, now + us
    from = (from - from % 1000) / 1000 + (from % 1000 > 0 and 1 or 0)
    if share then gone, also = newest[1], gone end
  end
  local room, span = used < limit and limit - used or 0.0, used > 0 and at + us - now or 0.0
  local reply = {limited, limit, room, wait or -1, span, upto and asked or nil}
  return reply, room0, span0, 1.0, write, fresh, from, period / 4, gone and {KEYS[1], 'ZREM', gone, also}
end

local plain_quota = (kind == 'QUOTA' or all) and function(s, ns, limit, period, n, upto, align)
  local now, us, limited, asked, wait = s * 1e6 + ns / 1000, period * 1000, 0, n, nil
  local state, used, ends, fresh, write, from = redis.pcall('GETRANGE', KEYS[1], '0', '36'), 0.0, 0.0, false, nil, nil
  if state == '' then
    fresh = redis.pcall('PEXPIRETIME', KEYS[1]) == -2
    if not fresh then return end
  else
    local units, at = string.match(type(state) == 'string' and state or '', '^([1-9]%d*)@([0-8]%d+)000$')
    if not units or #at ~= 16 then return end
    used, ends = units + 0.0, at + 0.0
    if used > 1e15 or ends < 1e6 then return end
    if ends <= now then used = 0.0 end
  end
  local room0, span0 = used < limit and limit - used or 0.0, used > 0 and ends - now or 0.0
  if upto and n > 0 then asked = n < room0 and n or room0 > 1 and room0 or 1.0 end
  if used + asked > limit then
    limited, wait, asked = 1, span0, 0
  elseif n > 0 then
    if used == 0 then ends = now + us - (align and (now - align) % us or 0) end
    used = used + asked
    if asked < n then wait = ends - now end
    write = {KEYS[1], 'SET', string.format('%d@%016d000', used, ends), 'KEEPTTL'}
    from = (ends - ends % 1000) / 1000 + (ends % 1000 > 0 and 1 or 0)
  end
  local room, span = used < limit and limit - used or 0.0, used > 0 and ends - now or 0.0
  local reply = {limited, limit, room, wait or -1, span, upto and asked or nil}
  return reply, room0, span0, 1.0, write, fresh, from, period / 4
end

local plain_lease = (kind == 'LEASE' or all) and function(s, ns, limit, period, id)
  local now, member = s * 1e6 + ns / 1000, '\2' .. id
  local newest, used, own, latest, last = redis.pcall('ZRANGE', KEYS[1], '0', '1', 'WITHSCORES'), 0, nil, 0.0, now
  local fresh = #newest == 0
  if newest.err then return end
  for i = 1, #newest, 2 do
    local time = -(tonumber(newest[i + 1]) or 0.0)
    if time <= now or time > 2 ^ 53 or time % 1 ~= 0 or string.sub(newest[i], 1, 1) ~= '\2' or #newest[i] > 513 then return end
    if latest == 0 and newest[i] ~= member then latest = time end
    if last < time then last = time end
  end
  if not fresh then
    -- A lapsed lease isn't plain, so all leases hold slots.
    local lapsed = redis.pcall('ZREVRANGEBYSCORE', KEYS[1], '+inf', string.format('%d', -now), 'WITHSCORES', 'LIMIT', '0', '1')
    used, own = redis.pcall('ZCARD', KEYS[1]), redis.pcall('ZSCORE', KEYS[1], member)
    if lapsed.err or #lapsed > 0 or type(used) ~= 'number' or type(own) == 'table' then return end
    local score = own and tonumber(own) or 0.0
    if -score > 2 ^ 53 or score % 1 ~= 0 then return end
  end
  if not own and used >= limit then return end
  local room0, held, lapse = used < limit and limit - used or 0.0, own and 1 or 0, now + period * 1000
  local ends = lapse > latest and lapse or latest
  local reply = {0, limit, room0 > 1 - held and room0 - (1 - held) or 0.0, -1, ends - now, held}
  local from = (ends - ends % 1000) / 1000 + (ends % 1000 > 0 and 1 or 0)
  return reply, room0, last - now, 1.0, {KEYS[1], 'ZADD', string.format('%d', -lapse), member}, fresh, from, period / 4
end

-- The words of a plain call are one text, which is read from the left: at is the place of what comes next.

local reply, parts -- of a plain call that isn't answered yet
if kind then
  local text, at, first = table.concat(ARGV, ' ') .. ' ', #name + 2, KEYS[1]
  local ms, words, key, before, hash = ARGV[argc] == 'MS', 1, 1, nil, nil
  local time = redis.pcall('TIME')
  local plain = not time.err
  if plain then now_s, now_ns = time[1] + 0.0, time[2] * 1000.0 end
  if all then
    kind, at = match(text, '^(%u+) ()', at)
    words, parts, before = 2, {}, {}
  end
  while plain do
    local limit, count, period, unit, n, id, lockout, upto, align
    if kind == 'THROTTLE' then
      limit, count, period, unit, n, at = match(text, '^(%d+) (%d+) (%d+)(%l*) (%d* ?)()', at)
      words = words + 3
    elseif kind == 'WINDOW' or kind == 'QUOTA' then
      limit, period, unit, n, at = match(text, '^(%d+) (%d+)(%l*) (%d* ?)()', at)
      words = words + 2
    elseif kind == 'LEASE' then
      limit, period, unit, id, at = match(text, '^(%d+) (%d+)(%l*) (%S+) ()', at)
      n, words = '', words + 3
    end
    plain = false
    if not limit or n == ' ' or id and #id > 512 then break end
    if n ~= '' then words = words + 1 end
    local rest, further, next_key, next_kind, after = #text + 1 - (ms and 3 or 0), false, nil, nil, nil
    if at ~= rest and not all and not id and string.sub(text, at, at + 4) == 'UPTO ' then
      upto, at, words = true, at + 5, words + 1
    end
    if at ~= rest and kind == 'THROTTLE' and not upto then
      local time, unit, after = match(text, '^LOCKOUT (%d+)([smhd]?) ()', at)
      if time then
        lockout, at, words = time * ({[''] = ms and 0.001 or 1.0, s = 1.0, m = 60.0, h = 3600.0, d = 86400.0})[unit], after, words + 2
        if lockout < 0.001 or lockout > RANGE / 1e9 then break end
      end
    elseif at ~= rest and kind == 'QUOTA' then
      local sign, hours, minutes, after = match(text, '^ALIGN ([-+])([0-2]%d):([0-5]%d) ()', at)
      align = sign and hours + 0 < 24 and (hours * 3.6e9 + minutes * 6e7) * (sign == '+' and -1 or 1) or nil
      if not sign then
        after = match(text, '^ALIGN 0 ()', at)
        align = after and 0
      end
      if align then at, words = after, words + 2 end
    end
    local last = at == rest
    if last then
      -- A word with a blank in it isn't plain.
      if words + (ms and 1 or 0) ~= argc or #KEYS ~= key then break end
    elseif all then
      next_key, next_kind, after = match(text, '^KEY (%S+) (%u+) ()', at)
      further = not next_key and kind == 'THROTTLE' and match(text, '^THROTTLE ()', at)
    end
    if not (last or next_key or further) or name == 'CL.THROTTLE' and (unit ~= '' or ms or upto or lockout) then break end

    limit, period, n = limit + 0.0, period + 0.0, n == '' and 1.0 or n + 0.0
    period = period * (unit == '' and (ms and 1 or 1e3) or unit == 's' and 1e3 or unit == 'm' and 6e4 or unit == 'h' and 3.6e6
      or unit == 'd' and 8.64e7 or unit == 'ms' and 1 or 0)
    if period < 1 then break end
    local room0, span0, per, write, fresh, from, slack, drop
    if kind == 'THROTTLE' then
      reply, room0, span0, per, write, fresh, from, slack, hash =
        plain_throttle(now_s, now_ns, hash, further, limit, count, period, n, upto, lockout)
    elseif limit < 1 or limit > 1e12 or period > 3153600000000 or n > limit and not upto or n > 1e12 then
      break
    elseif kind == 'QUOTA' then
      reply, room0, span0, per, write, fresh, from, slack = plain_quota(now_s, now_ns, limit, period, n, upto, align)
    elseif kind == 'WINDOW' then
      reply, room0, span0, per, write, fresh, from, slack, drop = plain_window(now_s, now_ns, limit, period, n, upto)
    else
      reply, room0, span0, per, write, fresh, from, slack = plain_lease(now_s, now_ns, limit, period, id)
    end
    if not reply then break end

    if write and not denied and not ro then
      local to, expiry = from + (slack < 1000 and 1000 or slack - slack % 1), fresh and -2 or redis.pcall('PEXPIRETIME', KEYS[1])
      if type(expiry) ~= 'number' then break end
      to = (expiry < from or expiry > to) and format('%d', to)
      if kind == 'QUOTA' then
        if to then write[4], write[5], to = 'PXAT', to, false end
      end
      local may = (to or drop) and redis.acl_check_cmd
      if all or write[7] then
        writes, late = writes or {}, late or {}
        local list = fresh and late or writes
        list[#list + 1] = write
        list[#list + 1] = drop
        if to then list[#list + 1] = {KEYS[1], 'PEXPIREAT', to} end
      elseif may and (to and not may('PEXPIREAT', KEYS[1], to) or drop and not may('ZREM', KEYS[1], drop[3], drop[4] or drop[3])) then
        break
      else
        local done
        if write[6] then
          done = redis.pcall(write[2], KEYS[1], write[3], write[4], write[5], write[6])
        elseif write[5] then
          done = redis.pcall(write[2], KEYS[1], write[3], write[4], write[5])
        else
          done = redis.pcall(write[2], KEYS[1], write[3], write[4])
        end
        if type(done) == 'table' and done.err then break end -- the general part words the error
        if drop and drop[4] then redis.call('ZREM', KEYS[1], drop[3], drop[4]) elseif drop then redis.call('ZREM', KEYS[1], drop[3]) end
        if to then redis.call('PEXPIREAT', KEYS[1], to) end
      end
    end

    per = per * (ms and 1e3 or 1e6)
    local rest, wait, span = reply[5] % per, reply[4], reply[5]
    reply[5] = (span - rest) / per + (rest > 0 and 1 or 0)
    if wait > 0 then
      rest = wait % per
      reply[4] = (wait - rest) / per + (rest > 0 and 1 or 0)
    end
    if all then
      rest = span0 % per
      denied = denied or reply[1] == 1
      parts[#parts + 1], before[#before + 1] = reply, {room0, (span0 - rest) / per + (rest > 0 and 1 or 0)}
    end
    plain = last or #parts < 32
    if last then break end
    if next_key then
      key, kind, at, words, hash = key + 1, next_kind, after, words + 3, nil
      plain = plain and next_key == KEYS[key] and next_key ~= first
      for i = 2, key - 1 do plain = plain and next_key ~= KEYS[i] end
      KEYS[1] = next_key
    else
      at, words = further, words + 1
    end
  end
  if plain and not all and not writes and not whole then return reply end
  if not plain then
    KEYS[1], reply, parts = first, nil, nil
  elseif denied then
    for i = 1, #parts do
      if parts[i][1] == 0 then parts[i][3], parts[i][5] = before[i][1], before[i][2] end
    end
  end
  if denied or not plain then writes, late = nil, nil end
end

-- What follows is for calls that aren't answered yet.

-- spread returns the words of a list from i on.
local function spread(list, i)
  local rest = #list - i
  if rest == 1 then return list[i], list[i + 1] end
  if rest > 4 then return list[i], list[i + 1], list[i + 2], list[i + 3], list[i + 4], spread(list, i + 5) end
  if rest > 0 then return list[i], spread(list, i + 1) end
  if rest == 0 then return list[i] end
end

-- commit makes sure that the user may run all writes, then runs them. It returns the text of an error. The server may refuse
-- the first write, because then nothing has been written.
local function commit()
  for i = 1, late and #late or 0 do writes[#writes + 1] = late[i] end
  for i = 2, writes and redis.acl_check_cmd and #writes or 0 do
    local w = writes[i]
    if not redis.acl_check_cmd(w[2], w[1], spread(w, 3)) then
      return "NOPERM this user has no permissions to run the '" .. string.lower(w[2]) .. "' command"
    end
  end
  for i = 1, writes and #writes or 0 do
    local w = writes[i]
    KEYS[1] = w[1] -- some proxies want a literal index in each call
    local done = redis.pcall(w[2], KEYS[1], spread(w, 3))
    if type(done) == 'table' and done.err then return done.err end
  end
end

-- decide returns the reply of GO.ALL. A clause that frees slots decides only if it is limited, or if all do.
local function decide(replies)
  local found, longest, least = 1, -1, math.huge
  for i = 1, #replies do
    local r = replies[i]
    local wait = r[4] < 0 and math.huge or r[4]
    if r[1] ~= 0 and wait > longest then
      found, longest = i, wait
    elseif longest < 0 and r[3] < least and not r.frees then
      found, least = i, r[3]
    end
  end
  local r = replies[found]
  return {r[1], r[2], r[3], r[4], r[5], found - 1, spread(replies, 1)}
end

-- answer returns the reply after the writes, or an error. In scripts servers don't begin a refusal by its code.
local function answer(reply, err)
  err = err or commit()
  if err then
    err = string.gsub(err, '^ERR (The user executing)', 'NOPERM %1')
    return redis.error_reply((string.gsub(err, '^ERR (ACL failure)', 'NOPERM %1')))
  end
  if not whole or type(reply) ~= 'table' then return reply end
  for i = 1, #reply do -- later versions of Lua would send doubles as such
    for j = 1, type(reply[i]) == 'table' and #reply[i] or 0 do reply[i][j] = whole(reply[i][j]) end
    if type(reply[i]) == 'number' then reply[i] = whole(reply[i]) end
  end
  return reply
end

if reply then return answer(parts and decide(parts) or reply) end

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
    if opts.FORCE and asked > 0 and asked > 1000000000000000 - r.used then go.fail('ERR more than 1000000000000000 units would be in use') end
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
        wrong = word.named(late and "ERR '<word>' is in the wrong place: quantity must come right after the period" or "ERR unknown option '<word>': only <options> may follow", ARGV[i], limiter.unknown)
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

-- Words. Times are in ms.

word = {
  looks_numeric = function(text) return match(text, '^[-+%d]') ~= nil or text == '' end,

  -- named puts a word of the call into an error, and a list where the error has one.
  named = function(err, text, list)
    local shown = string.gsub(string.sub(text, 1, 64), '[^ -~]', '?')
    return (string.gsub(err, '<(%l+)>', function(hole) return hole == 'word' and shown or list end))
  end,

  -- has reports whether a word is in a list of words with blanks around.
  has = function(list, text) return string.find(list, ' ' .. text .. ' ', 1, true) end,

  integer = function(text, what, least, most)
    if not match(text, '^[-+]?%d+$') then go.fail('ERR ' .. what .. ' is not an integer') end
    local n = tonumber(text) + 0.0
    if n < least or n > most then go.fail(format('ERR %s must be between %d and %d', what, least, most)) end
    return n
  end,

  -- split_time returns a number and the ms of its unit; nil if the word is not a time.
  split_time = function(text, ms)
    local digits, unit = match(text, '^([-+]?%d+)(%l*)$')
    if unit ~= '' then ms = ({ms = 1.0, s = 1000.0, m = 60000.0, h = 3600000.0, d = 86400000.0})[unit or ''] end
    if ms then return tonumber(digits) + 0.0, ms end
  end,

  -- time reads a time. The error of a word that isn't one names what the word may mean.
  time = function(text, unit, least, wrong, outside)
    local n, ms = word.split_time(text, unit)
    if n and (n < least or n * ms > 3153600000000) then go.fail(outside) end
    if n then return n * ms end
    local units, digits, letters = {'minutes', 'mins', 'seconds', 'secs', 'hours', 'hrs', 'days', 'milliseconds', 'msecs', 'months',
      milliseconds = 'ms', msecs = 'ms', months = 'mo'}, match(text, '^(%d+)(%D.*)$')
    for i = 1, digits and #text <= 20 and #units or 0 do
      local name = units[i]
      if string.sub(name, 1, #letters) == string.lower(letters) then
        go.fail(match(wrong, '^[^:]*') .. ': did you mean ' .. digits .. (units[name] or string.sub(name, 1, 1)) .. '?')
      end
    end
    go.fail(wrong)
  end,

  period = function(r, text)
    if r.redis_cell then
      if not match(text, '^[-+]?%d+$') then go.fail('ERR period is not an integer: CL.THROTTLE takes seconds without a unit') end
      local n = tonumber(text) * 1000.0
      if n < 1 or n > 3153600000000 then go.fail('ERR period must be between 1 s and 100 years') end
      return n
    end
    local months = match(text, '^([-+]?%d+)mo$')
    if not months then
      return word.time(text, r.unit, 1,
        'ERR period is not a time: use an integer, or one with a unit such as 250ms, 5s, 15m, 1h, 1d, or 1mo for a QUOTA',
        'ERR period must be between 1 ms and 100 years')
    end
    if r.kind ~= 'QUOTA' then go.fail('ERR only the period of a QUOTA can be in months: use days, such as 30d') end
    r.months = tonumber(months) + 0.0
    if r.months < 1 or r.months > 1200 then go.fail('ERR period must be between 1mo and 1200mo') end
    return r.months * 28 * 86400000
  end,

  -- read reads the period, the quantity and the words after options of a request: those that come first are judged first.
  read = function(r)
    local opts, text = r.opts, r.operand and ARGV[r.operand]
    r.period = word.period(r, ARGV[r.first + r.limiter.arity - 1])
    if r.quantity_word then r.quantity = word.integer(ARGV[r.quantity_word], 'quantity', -1000000000001, 1000000000001) end
    if opts.RAISE and r.quantity < 0 then go.fail('ERR quantity must be between 0 and 1000000000001') end
    if r.share_word and r.share_word < (r.operand or 0) then word.read_weight(r) end
    if text and opts.ALIGN then
      local sign, hours, minutes = match(text, '^([-+])(%d%d):(%d%d)$')
      local n, ms = word.split_time(text, r.unit)
      if sign and tonumber(hours) <= 23 and tonumber(minutes) <= 59 then
        n, ms = (hours * 60 + minutes) * (sign == '+' and -1.0 or 1.0), 60000
      end
      if not n then go.fail('ERR offset is not a time: use one such as -1h, or a UTC offset such as +01:00') end
      r.offset = n * ms
      if math.abs(r.offset) > 3153600000000 then go.fail('ERR offset must be within 100 years either way') end
    elseif text and opts.RESERVE then
      r.max_wait = word.time(text, r.unit, 0,
        'ERR maxwait is not a time: use an integer, or one with a unit such as 500ms or 5s',
        'ERR maxwait must be between 0 and 100 years')
    elseif text and opts.LOCKOUT then
      r.lockout = word.time(text, r.unit, 1,
        'ERR the time of LOCKOUT is not a time: use an integer, or one with a unit such as 15m or 1h',
        'ERR the time of LOCKOUT must be between 1 ms and 100 years')
    end
    word.read_weight(r)
  end,

  read_weight = function(r)
    if r.share_word then r.weight = word.integer(ARGV[r.share_word], 'weight', 1, 1000) end
  end,

  -- lacks returns the error of an option without the word after it; nil if none belongs there.
  lacks = function(option)
    if option == 'ALIGN' then return 'ERR ALIGN needs an offset, such as -1h or +01:00' end
    if option == 'RESERVE' then return 'ERR RESERVE needs a maxwait, such as 500ms' end
    if option == 'LOCKOUT' then return 'ERR LOCKOUT needs a time, such as 15m' end
    if option == 'SHARE' then return 'ERR SHARE needs a weight, such as 1' end
  end,

  find_option = function(text)
    text = string.upper(text)
    return not match(text, ' ') and word.has(' MS UPTO EXACT ALIGN FORCE RESERVE LOCKOUT RAISE SHARE ', text) and text
  end,

  says_ms = function(from)
    for i = from, argc do
      if string.upper(ARGV[i]) == 'MS' then return true end
    end
  end,

  -- options reads the options of a request from a word on. It returns the place of the first word that is none of those
  -- allowed, and an error.
  options = function(r, i, allowed)
    local mode
    while i <= argc do
      local o = string.upper(ARGV[i])
      local wrong = o == 'SHARE' and r.place and all_of.misplaced(r)
      if not wrong and (match(o, ' ') or not word.has(allowed, o)) then break end
      local excludes, lacks = word.has(' UPTO FORCE RESERVE LOCKOUT RAISE ', o), word.lacks(o)
      wrong = wrong or r.opts[o] and word.named("ERR option '<word>' given more than once", ARGV[i])
        or excludes and mode and word.named("ERR option '<word>' cannot be combined with <mode>", ARGV[i], mode)
      if lacks then i = i + 1 end
      wrong = wrong or i > argc and lacks
      if wrong then return i, wrong end
      if o == 'SHARE' then r.share_word = i elseif lacks then r.operand = i end
      r.opts[o], mode, i = true, mode or excludes and o, i + 1
    end
    return i
  end,
}

-- Rates. A rate is units per interval: an interval is whole * per + part in 1/per ns. A length of time is ns and a fraction in
-- 1/per ns, which is below per.

local function make_rates()
  rates = {
    new = function(ns, per) return {interval = ns, per = per, whole = div(ns, per), part = ns % per} end,

    -- span returns how long units take to drain.
    span = function(rate, units)
      if rate.per == 1 then return units * rate.whole, 0.0 end
      local n = units * rate.part
      local fraction = n % rate.per
      return units * rate.whole + (n - fraction) / rate.per, fraction
    end,

    shorter = function(ns, fraction, ns2, fraction2) return ns < ns2 or ns == ns2 and fraction < fraction2 end,

    -- minus returns a difference, or 0 if that is below 0.
    minus = function(rate, ns, fraction, ns2, fraction2)
      if ns < ns2 or ns == ns2 and fraction < fraction2 then return 0.0, 0.0 end
      if fraction < fraction2 then return ns - ns2 - 1, fraction + rate.per - fraction2 end
      return ns - ns2, fraction - fraction2
    end,

    plus = function(rate, ns, fraction, ns2, fraction2)
      if fraction + fraction2 >= rate.per then return ns + ns2 + 1, fraction + fraction2 - rate.per end
      return ns + ns2, fraction + fraction2
    end,

    ceil = function(ns, fraction) return fraction > 0 and ns + 1 or ns end,

    -- check_range makes sure that a length of time and the units in it can be reckoned with.
    check_range = function(rate, ns)
      local fits = rate.per == 1 or rate.interval <= RANGE and ns * rate.per / rate.interval * rate.per < RANGE
      if ns >= RANGE or not fits then go.out_of_range() end
    end,

    -- units returns how many units drain in a length of time, and the rest of it in 1/per ns.
    units = function(rate, ns, fraction)
      if rate.per == 1 then return (ns - ns % rate.interval) / rate.interval, ns % rate.interval end
      local n = (ns * rate.per + fraction) / rate.interval
      n = n - n % 1
      local a, b = rates.span(rate, n) -- n may be one too many or too few
      if rates.shorter(ns, fraction, a, b) then
        n = n - 1
        a, b = rates.span(rate, n)
      else
        local c, d = rates.span(rate, n + 1)
        if not rates.shorter(ns, fraction, c, d) then n, a, b = n + 1, c, d end
      end
      a, b = rates.minus(rate, ns, fraction, a, b)
      return n, a * rate.per + b
    end,

    units_up = function(rate, ns, fraction)
      local n, rest = rates.units(rate, ns, fraction)
      return rest > 0 and n + 1 or n
    end,

    -- convert returns how long what drains in a length of time takes to drain at another rate.
    convert = function(ns, fraction, from, to)
      local n, rest = rates.units(from, ns, fraction)
      if n * to.interval / to.per > RANGE or n * to.per > RANGE then go.out_of_range() end
      -- What is left of a unit is rest * to.interval / from.interval, rounded up: bit by bit, because the product is too long.
      local a, b, d, quotient, left, bit = rest, to.interval, from.interval, 0.0, 0.0, 4503599627370496
      while bit >= 1 do
        quotient = quotient + quotient
        if left >= d - left then quotient, left = quotient + 1, left - (d - left) else left = left + left end
        if b >= bit then
          b = b - bit
          if left >= d - a then quotient, left = quotient + 1, left - (d - a) else left = left + a end
        end
        bit = bit / 2
      end
      if left > 0 then quotient = quotient + 1 end
      a, b = rates.span(to, n)
      return rates.plus(to, a, b, div(quotient, to.per), quotient % to.per)
    end,
  }
end

-- Cells: what a hash holds. Cell i has the fields 4i to 4i + 3 and 128 + i: when nothing is in use any more, in ns since the
-- Unix epoch, the rate's interval (in s, or ns below 0), the fraction and the rate's per, and the end of a lockout.

local function make_cells()
  local LAST = '9223372036854775807'

  local function instant(text) return (tonumber(string.sub(text, 1, -10)) or 0) + 0.0, string.sub(text, -9) + 0.0 end

  cells = {
    -- after returns how long after now an instant is, perhaps below 0.
    after = function(text)
      local s, ns = instant(text)
      return (s - now_s) * 1e9 + (ns - now_ns)
    end,

    -- read reads all cells of a hash, and makes sure that it holds nothing else.
    read = function(state, key, length)
    local function is_integer(text)
      local digits = match(text, '^-?([1-9]%d*)$') or text == '0' and text
      return digits and (#digits < 19 or #digits == 19 and digits <= LAST)
    end

    local function is_nanos(text) -- as the server writes integers
      return (match(text, '^[1-9]%d*$') or text == '0') and #text <= 19 and (now_s < 1e9 or #text == 19)
    end

    -- decode reads the fields of a cell; nil if they aren't valid.
    local function decode(f)
      for i = 1, 5 do
        if f[i] and not is_integer(f[i]) then return end
      end
      local sign, digits = match(f[2], '^(-?)([1-9]%d*)$')
      if not digits or not is_nanos(f[1]) or f[5] and not is_nanos(f[5]) then return end
      local interval, per, fraction = tonumber(digits) + 0.0, (f[4] or 1) + 0.0, (f[3] or 0) + 0.0
      if sign == '' then
        if interval > 3153600000 then return end
        interval = interval * 1e9
      elseif #digits > 19 or #digits == 19 and digits >= '3153600000000000000' or match(digits, '000000000$') then
        return
      end
      if f[3] and (per < 2 or per > 1e12 or fraction < 0 or fraction >= per) then return end
      return {fields = f, fraction = fraction, rate = rates.new(interval, per), tat = f[1], locked = f[5]}
    end

      local last, names = state.asked - 1, {}
      if length / 2 > last and length > 2 then last = length / 2 < 31 and div(length, 2) or 31 end
      for i = 0, last do
        for f = 0, 3 do names[#names + 1] = format('%d', 4 * i + f) end
        names[#names + 1] = format('%d', 128 + i)
      end
      local values, counted, gap, after_gap = go.call(key, 'HMGET', spread(names, 1)), 0, false, false
      for i = 0, last do
        local f, n = {}, 0
        for j = 1, 5 do
          f[j] = values[5 * i + j] or false
          if f[j] then n = n + 1 end
        end
        if n == 0 then
          gap = true
        elseif not f[1] or not f[2] or not f[3] ~= not f[4] then
          -- Of two reasons the module names the one that it meets first.
          go.fail(f[1] and f[2] and not (is_integer(f[1]) and is_integer(f[2])) and 'ERR the rate limiter at this key is damaged' or 'ERR the hash at this key is not a rate limiter')
        else
          counted, after_gap, state.cells[i + 1] = counted + n, after_gap or gap, decode(f) or go.fail('ERR the rate limiter at this key is damaged')
        end
      end
      if counted ~= length or after_gap then go.fail('ERR the hash at this key is not a rate limiter') end
    end,

    load = function(r)
      local state = r.state
      if state.cells then return end
      state.cells = {}
      KEYS[1] = r.key
      local length = redis.pcall('HLEN', KEYS[1])
      if type(length) == 'table' then
        if not match(length.err, 'WRONGTYPE') then go.fail(length.err) end
        local text = go.call(r.key, 'GETRANGE', '0', '19')
        if not match(text, '^[1-9]%d*$') or #text ~= 19 or text > LAST then go.fail('WRONGTYPE Operation against a key holding the wrong kind of value') end
        state.adopted, state.cells[1] = true, {tat = text, fraction = 0.0, fields = {}} -- redis-cell's
      elseif length > 0 then
        cells.read(state, r.key, length)
      end
      state.fresh = length == 0 or state.adopted
    end,

    -- store sets the fields of a request's cell after judge.
    store = function(r, slack)
      -- stamp writes the instant span ns from now.
      local function stamp(span)
        local ns = now_ns + span % 1e9
        local s = now_s + (span - span % 1e9) / 1e9 + (ns >= 1e9 and 1 or 0)
        return s > 0 and format('%d%09d', s, ns % 1e9) or format('%d', ns % 1e9)
      end
      local state, rate = r.state, r.rate
      local cell = state.cells[r.cell + 1] or {fields = {}}
      local interval = rate.interval % 1e9 == 0 and rate.interval / 1e9 or -rate.interval
      local fields = {stamp(r.after), format('%d', interval), false, false, false}
      if rate.per > 1 then fields[3], fields[4] = format('%d', r.after_fraction), format('%d', rate.per) end
      if r.locked > 0 then fields[5] = stamp(r.locked) end
      cell.old, cell.fields, cell.fraction = cell.old or cell.fields, fields, r.after_fraction
      cell.tat, cell.locked, state.cells[r.cell + 1] = fields[1], fields[5], cell
      state.slack = math.min(slack, state.slack or slack)
    end,

    -- finish writes the changed cells of a key. A key whose cells are all void is deleted.
    finish = function(state, key)
      if not state.slack then return end
      local s, ns, set, unset, fresh = 0, 0, {key, 'HSET'}, {key, 'HDEL'}, state.fresh
      local function latest(text, more)
        local a, b = instant(text)
        if more and text ~= LAST then b = b + 1 end
        if a > s or a == s and b > ns then s, ns = a, b end
      end
      for i = 1, #state.cells do
        local cell = state.cells[i]
        local new, old = cell.fields, cell.old
        latest(cell.tat, cell.fraction > 0)
        if cell.locked then latest(cell.locked) end
        for f = 1, old and 5 or 0 do
          if new[f] ~= old[f] and (new[f] or old[f]) then
            local list = new[f] and set or unset
            list[#list + 1] = format('%d', f == 5 and 127 + i or 4 * i + f - 5)
            if new[f] then set[#set + 1] = new[f] end
          end
        end
      end
      local void = s < now_s or s == now_s and ns <= now_ns
      if void or state.adopted then write(fresh and not void, {key, 'DEL'}) end
      if void then return end
      if #set > 2 then write(fresh, set) end
      if #unset > 2 then write(fresh, unset) end
      go.expire(key, fresh, s * 1000 + up(ns, 1e6), state.slack / 4e6)
    end,
  }
end

-- THROTTLE: GCRA at a cell of a hash.

function make.THROTTLE()
  make_rates()
  make_cells()
  local MORE = 1 + 1e-12 -- so much more than another number is more for certain, whatever doubles cut off
  throttle = {
    arity = 3, needs = 'max_burst, count and period', has_units = true, has_cells = true,
    options = ' MS UPTO FORCE RESERVE LOCKOUT RAISE ', unknown = 'MS, UPTO, FORCE, RESERVE, LOCKOUT or RAISE', clause_options = ' LOCKOUT ',
    load = cells.load, finish = cells.finish,

    parse = function(r)
      r.limit = word.integer(ARGV[r.first], 'max_burst', 0, 999999999999) + 1
      r.count = word.integer(ARGV[r.first + 1], 'count', 1, 1000000000000)
      word.read(r)
      -- Doubles cut off less than 0.002 ms.
      if r.limit * r.period / r.count > 3153600000000 + 0.002 then go.fail('ERR (max_burst + 1) x period / count must not exceed 100 years') end
      if r.redis_cell and r.count > r.period * 1e6 then go.fail('ERR the rate must not exceed one unit per nanosecond') end
    end,

    -- set_rate puts the rate into lowest terms.
    set_rate = function(r)
      local function gcd(a, b)
        while b > 0 do
          local rest = a % b
          a = b
          b = rest
        end
        return a
      end
      local a = gcd(r.period, r.count)
      local b = gcd(r.count / a, 1e6)
      local rate = rates.new(r.period / a * (1e6 / b), r.count / a / b)
      if r.limit * rate.interval / rate.per > RANGE or rate.per > 1 and (rate.interval > RANGE or r.limit * rate.per > RANGE)
        or r.lockout and r.lockout * 1e6 > RANGE then
        go.out_of_range()
      end
      r.rate, r.full, r.full_fraction = rate, rates.span(rate, r.limit)
    end,

    -- use sets what is in use at the rate of the call: r.used and r.used_fraction. r.carried says that it was converted.
    use = function(r)
      local cell = r.state.cells[r.cell + 1]
      r.used, r.used_fraction, r.carried, r.locked = 0.0, 0.0, false, 0.0
      if cell and cell.locked then
        r.locked = math.max(cells.after(cell.locked), 0)
        if r.locked > RANGE then go.out_of_range() end
      end
      r.held = r.locked -- a lockout that this call begins doesn't count
      local used = cell and cell.tat and cells.after(cell.tat)
      if not used or used < 0 or used == 0 and cell.fraction == 0 then return end
      local own = cell.rate
      rates.check_range(own or r.rate, used + 1)
      if own and own.interval > RANGE then go.out_of_range() end
      r.used, r.used_fraction = used, cell.fraction
      if own and (own.interval ~= r.rate.interval or own.per ~= r.rate.per) then
        r.left, r.left_fraction, r.own, r.carried = used, cell.fraction, own, true
        r.used, r.used_fraction = rates.convert(used, cell.fraction, own, r.rate)
        rates.check_range(r.rate, r.used + 1)
      end
    end,

    take = function(r, v, quantity, wait, may_lock)
      v.limited = quantity > r.limit
      if v.limited then return end
      local a, b = rates.span(r.rate, quantity)
      local fits, fraction = rates.minus(r.rate, r.full, r.full_fraction, a, b)
      fits = fits + wait
      if r.locked > 0 or rates.shorter(fits, fraction, r.used, r.used_fraction) then
        v.limited = true
        if quantity > 0 then
          v.store = r.carried
          if r.lockout and may_lock and r.locked == 0 then r.locked, v.store = r.lockout * 1e6, true end
        end
        v.retry = math.max(rates.ceil(rates.minus(r.rate, r.used, r.used_fraction, fits, fraction)), r.locked)
      elseif quantity > 0 then
        r.after, r.after_fraction = rates.plus(r.rate, r.used, r.used_fraction, a, b)
        rates.check_range(r.rate, r.after)
        v.granted, v.store = quantity, true
      end
    end,

    left_units = function(r, ns, fraction)
      return (rates.units(r.rate, rates.minus(r.rate, r.full, r.full_fraction, ns, fraction)))
    end,

    force = function(r, v, quantity)
      local rate, raise = r.rate, r.opts.RAISE
      if quantity == 0 then return end
      if (raise and 0 or r.used) + quantity * rate.interval / rate.per >= RANGE or quantity * rate.per > RANGE then go.out_of_range() end
      local a, b = rates.span(rate, quantity)
      if not raise then
        v.granted, a, b = quantity, rates.plus(rate, r.used, r.used_fraction, a, b)
      elseif rates.shorter(r.used, r.used_fraction, a, b) then
        v.granted = rates.units_up(rate, rates.minus(rate, a, b, r.used, r.used_fraction))
      else
        return
      end
      rates.check_range(rate, a)
      v.store, r.after, r.after_fraction = true, a, b
    end,

    by_mode = function(r, v, quantity, may_lock)
      local opts, rate = r.opts, r.rate
      if quantity < 0 then
        local n = rates.units_up(rate, r.used, r.used_fraction)
        v.granted, v.store, r.after, r.after_fraction = -math.min(-quantity, n), n > 0, 0.0, 0.0
        if -quantity < n then r.after, r.after_fraction = rates.minus(rate, r.used, r.used_fraction, rates.span(rate, -quantity)) end
      elseif opts.FORCE then
        throttle.force(r, v, quantity)
      elseif opts.UPTO then
        local left = r.locked == 0 and throttle.left_units(r, r.used, r.used_fraction) or 0
        local asked = math.min(quantity, left > 1 and left or 1)
        throttle.take(r, v, asked, 0, false)
        if v.granted > 0 and asked < quantity then
          local a, b = rates.plus(rate, r.after, r.after_fraction, rates.span(rate, 1))
          v.retry = rates.ceil(rates.minus(rate, a, b, r.full, r.full_fraction))
        end
      elseif opts.RESERVE and quantity > 0 then
        throttle.take(r, v, quantity, math.min(r.max_wait * 1e6, RANGE), false)
        if v.granted > 0 then v.wait = rates.ceil(rates.minus(rate, r.after, r.after_fraction, r.full, r.full_fraction)) end
      else
        throttle.take(r, v, quantity, 0, may_lock)
        v.store = v.store or r.settle and r.carried
      end
    end,

    -- check_debt is about a contract's bound, so it comes before the checks of the range.
    check_debt = function(r, quantity)
      local cell, units = r.state.cells[r.cell + 1], quantity
      if cell and cell.tat then
        local used, interval = cells.after(cell.tat), cell.rate and cell.rate.interval / cell.rate.per or r.period * 1e6 / r.count
        if used > 0 then units = not r.opts.RAISE and units + used / interval or (used * MORE + 1) / interval < units and units or 0 end
      end
      if units * r.period / r.count > 3153600000000 * MORE then go.fail('ERR what is in use would take more than 100 years to drain') end
    end,

    -- drains_to returns how long it takes until no more than limit units are in use, at the stored rate.
    drains_to = function(r, limit)
      if limit * r.own.interval / r.own.per >= RANGE then return 0.0 end
      if limit * r.own.per > RANGE then go.out_of_range() end
      return rates.ceil(rates.minus(r.own, r.left, r.left_fraction, rates.span(r.own, limit)))
    end,

    judge = function(r, quantity, may_lock)
      local v = {limited = false, granted = 0, remaining = 0, retry = 0, wait = 0, reset = 0, store = false}
      if r.opts.FORCE and quantity > 0 then throttle.check_debt(r, quantity) end
      if not r.rate then throttle.set_rate(r) end
      throttle.use(r)
      r.after, r.after_fraction = r.used, r.used_fraction
      throttle.by_mode(r, v, quantity, may_lock)
      v.reset = math.max(rates.ceil(r.after, r.after_fraction), r.locked)
      if r.carried and not v.store then -- usage drains on at its own rate
        v.reset = math.max(rates.ceil(r.left, r.left_fraction), r.locked)
        if v.limited and quantity == 0 then v.retry = math.max(throttle.drains_to(r, r.limit), r.locked) end
      end
      if r.locked == 0 then v.remaining = throttle.left_units(r, r.after, r.after_fraction) end
      r.v = v
      return v
    end,

    apply = function(r)
      r.slack = math.min(rates.ceil(r.full, r.full_fraction), r.period * 1e6)
      if r.v.store then cells.store(r, r.slack) end
    end,
  }
  return throttle
end

-- Sorted sets: windows and leases. A score is a time in µs with its sign turned, so the newest entry is the first.

local function make_zset()
  zset = zset or {
    -- entries returns {member, time} for each pair of a reply. The time is nil if the score isn't one.
    entries = function(reply)
      local list = {}
      for i = 1, #reply, 2 do
        local time = -(tonumber(reply[i + 1]) or 1)
        list[#list + 1] = {member = reply[i], time = time >= 0 and time <= RANGE and time % 1 == 0 and time + 0.0 or nil}
      end
      return list
    end,

    -- newest returns up to most entries; nil if there are none.
    newest = function(key, most)
      local reply = go.call(key, 'ZRANGE', '0', format('%d', most - 1), 'WITHSCORES')
      return #reply > 0 and zset.entries(reply) or nil
    end,

    -- first returns the oldest entry after a time.
    first = function(key, after)
      return zset.entries(go.call(key, 'ZREVRANGEBYSCORE', '(' .. format('%d', -after), '-inf', 'WITHSCORES', 'LIMIT', '0', '1'))[1]
    end,

    -- oldest returns up to most entries from a score up to a time, the oldest first.
    oldest = function(key, score, up_to, most)
      return zset.entries(go.call(key, 'ZREVRANGEBYSCORE', score, format('%d', -up_to), 'WITHSCORES', 'LIMIT', '0', format('%d', most)))
    end,
  }
end

-- WINDOW: a sorted set. A member is '\1' and the total of all units so far, then ':' and the entry's own units, if these
-- aren't 1, then ':' and a bound of the units in use, if units were given back: all in base 36. A total is modulo 2^64, in two
-- limbs: high * LIMB + low.

function make.WINDOW()
  make_zset()
  local LIMB, TURN_HIGH, TURN_LOW = 3656158440062976, 5045, 1424743591837696 -- 36^10; 2^64 in limbs
  local function damaged() go.fail('ERR the rate limiter at this key is damaged') end

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
    arity = 2, needs = 'limit and period', has_units = true,
    options = ' MS UPTO EXACT FORCE RAISE ', unknown = 'MS, UPTO, EXACT, FORCE or RAISE', clause_options = ' EXACT SHARE ',

    parse = function(r)
      r.limit = word.integer(ARGV[r.first], 'limit', 1, 1000000000000)
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
      if not e.time or e.time > RANGE - 3153600000000 * 1000 or not high or not high2 or not high3 or own == '0' or own == '1' and not cap
        or high2 * LIMB + low2 > 2 ^ 62 or high3 * LIMB + low3 > 2 ^ 62 then
        go.fail('ERR the sorted set at this key is not a sliding window')
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
        if #all ~= length then go.fail('ERR the sorted set at this key is not a sliding window') end
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

-- QUOTA: a string, the units in use, '@' and the end of the window in ns since the Unix epoch.

function make.QUOTA()
  local DAY = 86400000

  -- month_day returns the first day of a month. January 1, 1970 is day 0, and its month is 0.
  local function month_day(month)
    local before = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}
    local years, in_year = div(month, 12) + 1969, month % 12
    local year, leap_days = years + 1, div(years, 4) - div(years, 100) + div(years, 400)
    if in_year >= 2 and year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) then leap_days = leap_days + 1 end
    return years * 365 + leap_days - 719162 + before[in_year + 1]
  end

  -- month_begin returns the instant of a month at this offset, on the month's last day if it lacks that day.
  local function month_begin(month, offset)
    return math.min(month_day(month), month_day(month + 1) - 1 - div(offset, DAY * 1000)) * DAY * 1000 + offset
  end

  local function window_end(r)
    local now, us = go.now, r.period * 1000
    if not r.opts.ALIGN then return now + us end
    local offset = r.offset * 1000
    if not r.months then return now - (now - offset) % us + us end
    local first = div(div(div(now - offset, DAY * 1000) * 4800, 146097) - 1, r.months) * r.months
    repeat first = first + r.months until month_begin(first, offset) > now
    return month_begin(first, offset)
  end

  quota = {
    arity = 2, needs = 'limit and period', has_units = true,
    options = ' MS UPTO ALIGN FORCE RAISE ', unknown = 'MS, UPTO, ALIGN, FORCE or RAISE', clause_options = ' ALIGN SHARE ',

    parse = function(r)
      r.limit = word.integer(ARGV[r.first], 'limit', 1, 1000000000000)
      word.read(r)
      if not r.months or r.wrong and not r.opts.ALIGN then return end
      if not r.opts.ALIGN then go.fail('ERR a period in months needs ALIGN: use ALIGN +00:00 for months of UTC') end
      if r.offset <= -28 * DAY or r.offset >= 31 * DAY then go.fail('ERR offset must be more than -28 and less than 31 days if the period is in months') end
    end,

    load = function(r)
      r.used, r.ends, r.there = 0.0, 0.0, true
      local text = go.call(r.key, 'GETRANGE', '0', '36')
      if text == '' then
        r.there = go.call(r.key, 'EXISTS') == 1
        if not r.there then return end
      end
      local used, s, us = match(text, '^([1-9]%d*)@(%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d)000$')
      local micros = used and s * 1e6 + us
      if not used or #text > 36 or tonumber(used) > 1000000000000000 or micros < 1 or s .. us > '9007199254740992' then
        go.fail('ERR the string at this key is not a quota')
      end
      if micros > go.now then r.used, r.ends = used + 0.0, micros end
    end,

    judge = function(r, quantity)
      local v, now = go.count(r, quantity), go.now
      r.v, r.next_end = v, v.granted > 0 and r.used == 0 and window_end(r) or r.ends
      v.retry, v.reset = v.await and r.next_end - now or 0, v.used > 0 and r.next_end - now or 0
      return v
    end,

    apply = function(r)
      local v, fresh = r.v, not r.there
      if not v.store then return end
      if v.used == 0 then return write(false, {r.key, 'DEL'}) end
      local expiry = go.expiry(r.key, fresh, up(r.next_end, 1000), r.period / 4)
      local text = format('%d@%010d%06d000', v.used, div(r.next_end, 1e6), r.next_end % 1e6)
      write(fresh, {r.key, 'SET', text, expiry and 'PXAT' or 'KEEPTTL', expiry})
    end,
  }
  return quota
end

-- Leases of several slots. Such a lease has a second member, '\3' and the id, whose score is the number of slots. The score of
-- '\4' is the sum of slots - 2 over all of these. So the slots at a key are its members - 1 and that sum.

local function make_slots() -- few calls need it
  if slots then return slots end
  local function foreign() go.fail('ERR the sorted set at this key holds no leases') end

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
      if #e.member > 1 + 512 then return true elseif string.sub(e.member, 1, 1) == '\3' then found = found + 1 end
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
        e.count, e.counter = number(scores[i + 1], 2, 1000000000000), names[i + 1]
      end
      return number(scores[1], 0, 1000000000000)
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

-- LEASE: a sorted set of slots by holder. A member is '\2' and the holder's id; its time is when the lease lapses.

function make.LEASE()
  make_zset()
  lease = {
    arity = 3, needs = 'limit, ttl and id', options = ' MS ', unknown = 'MS', clause_options = ' SHARE ',

    -- parse reads limit, ttl, id and slots. A call for 0 slots has the quantity -1: it takes nothing, but differs from a peek.
    parse = function(r)
      r.limit = word.integer(ARGV[r.first], 'limit', 1, 1000000000000)
      r.period = word.time(ARGV[r.first + 1], r.unit, 1,
        'ERR ttl is not a time: use an integer, or one with a unit such as 250ms, 5s, 15m, 1h or 1d',
        'ERR ttl must be between 1 ms and 100 years')
      r.member = lease.member(ARGV[r.first + 2])
      r.slots = r.quantity_word and word.integer(ARGV[r.quantity_word], 'slots', 0, 1000000000000) or 1.0
      r.quantity = r.slots > 0 and r.slots or -1
      word.read_weight(r)
    end,

    member = function(id)
      if #id > 512 then go.fail('ERR an id must not exceed 512 bytes') end
      return '\2' .. id
    end,

    check = function(e)
      if not e.time or string.sub(e.member, 1, 1) ~= '\2' or #e.member > 1 + 512 then go.fail('ERR the sorted set at this key holds no leases') end
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

-- RELEASE: what gives slots back, as a clause and as a command.

function make.RELEASE()
  local l = go.limiter('LEASE')
  return {
    arity = 1, needs = 'id', clause_options = '  ', frees = true, load = l.load, apply = l.apply,

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
  if argc > 1 + 1024 then go.fail('ERR at most 1024 ids can be released in one call') end
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
    go.fail('ERR the rate limiter at this key is damaged')
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
        if us == math.huge then go.fail('ERR the rate limiter at this key is damaged') end
        if us then replies[n][4] = up(us, r.opts.MS and 1000 or 1e6) end
      end
    end,
  }
end

-- GO.ALL.

local function make_all()
  local function clause(n, err) return (string.gsub(err, '^ERR ', 'ERR clause ' .. n .. ': ')) end

  -- wrong_word returns the error of a word after all clauses and some options.
  local function wrong_word(text, last, r, after_options)
    local o, numeric, err = word.find_option(text), word.looks_numeric(text), "ERR '<word>' is neither a clause nor an option: write KEY before another key"
    if not after_options and (numeric and not r.limiter.has_units or o and o ~= 'UPTO' and o ~= 'RESERVE' and o ~= 'RAISE') then
      return word.named(clause(last, "ERR '<word>' is not an option of <kind>"), text, r.kind)
    end
    if o == 'EXACT' or o == 'ALIGN' or o == 'LOCKOUT' or o == 'SHARE' then
      err = "ERR '<word>' must come before MS and FORCE"
    elseif o then
      err = "ERR '<word>' is not an option of GO.ALL"
    elseif numeric then
      err = "ERR '<word>' is in the wrong place: quantity must come right after the period"
    elseif after_options then
      err = "ERR '<word>' must come before MS and FORCE"
    end
    return word.named(err, text)
  end

  -- plan finds the clauses in the words. It returns the error of a word, after the clauses before it, and whether the keys
  -- aren't those of the script.
  local function plan(clauses)
    local i, key, seen, other = 2, 1, {[KEYS[1]] = true}, false -- key is an index of KEYS
    while true do
      local state, kind, name = {asked = 0}, nil, string.upper(ARGV[i] or '')
      local limiter = go.limiter(name)
      if i > argc then return 'ERR a key needs a clause after it, such as THROTTLE 4 5 1m' end
      if not limiter then return word.named("ERR a clause must begin with THROTTLE, WINDOW, QUOTA, LEASE or RELEASE, not '<word>'", ARGV[i]) end
      while limiter do
        local n = #clauses + 1
        if n > 32 then return 'ERR at most 32 clauses' end
        if kind and (not limiter.has_cells or kind ~= name) then return clause(n, 'ERR a WINDOW, QUOTA, LEASE or RELEASE clause needs a key of its own: write KEY and another key before it') end
        if i + limiter.arity > argc then return clause(n, word.named("ERR '<word>' needs <args>", ARGV[i], limiter.needs)) end
        local r = go.new_request(name, i + 1, KEYS[key], state)
        r.place, r.cell = n, state.asked
        kind, state.asked, clauses[n], i = name, state.asked + 1, r, i + 1 + limiter.arity
        if not limiter.frees and i <= argc and word.looks_numeric(ARGV[i]) then
          r.quantity_word = i
          i = i + 1
        end
        local wrong
        i, wrong = word.options(r, i, limiter.clause_options)
        if wrong then return clause(n, wrong) end
        name = string.upper(ARGV[i] or '')
        limiter = go.limiter(name)
      end
      if name ~= 'KEY' then break end
      if i + 2 > argc then return 'ERR a key needs a clause after it, such as THROTTLE 4 5 1m' end
      if seen[ARGV[i + 1]] then return 'ERR a key may be named only once' end
      key, i = key + 1, i + 2
      if key > 32 then return 'ERR at most 32 clauses' end
      seen[ARGV[i - 1]], other = true, other or ARGV[i - 1] ~= KEYS[key]
    end
    local opts, wrong = {}, nil
    i, wrong = word.options({opts = opts}, i, ' MS FORCE ')
    if i <= argc and not wrong then return wrong_word(ARGV[i], #clauses, clauses[#clauses], next(opts)) end
    for n = 1, #clauses do
      local r = clauses[n]
      if opts.FORCE and r.kind == 'LEASE' then return 'ERR FORCE cannot be combined with a LEASE clause' end
      if opts.FORCE and r.opts.LOCKOUT then return 'ERR FORCE cannot be combined with LOCKOUT' end
      r.opts.MS, r.opts.FORCE = opts.MS, opts.FORCE
    end
    return wrong, other or key ~= #KEYS
  end

  -- unfit_share returns the error of the numbers of a LEASE clause that shares units.
  local function unfit_share(r)
    if r.weight ~= 1 then return 'ERR weight must be 1 if a LEASE clause shares units' end
    for _, f in ipairs(r.fronts) do
      if f.quantity ~= 0 then return 'ERR a LEASE clause can share units only if the quantity is 0 in the clauses before it: held and spent would overlap' end
      f.is_held = true
    end
  end

  -- parse reads the words of the clauses before the wrong one. It reports whether a clause can never admit.
  local function parse(clauses, wrong)
    local never = false
    for n = 1, #clauses do
      local r = clauses[n]
      if wrong then r.wrong, r.opts.MS = true, r.opts.MS or word.says_ms(2) or string.upper(KEYS[1]) == 'MS' end
      r.unit = r.opts.MS and 1 or 1000
      local ok, err = pcall(r.limiter.parse, r)
      if not ok and type(err) == 'table' and err.text then err.text = clause(n, err.text) end
      if not ok then error(err, 0) end
      local unfit = r.share_word and r.holds and unfit_share(r)
      if unfit then go.fail(clause(n, unfit)) end
      never = never or all_of.never(r)
    end
    return never
  end

  -- judge judges each clause alone. An error of the contract comes before one of the range.
  local function judge(clauses, may_lock)
    local replies, beyond = {}, nil
    for n = 1, #clauses do
      local r = clauses[n]
      if r.limiter.has_units then r.limiter.load(r) end -- slots are loaded
      local ok, v = pcall(r.limiter.judge, r, r.quantity, may_lock)
      if ok then
        replies[n] = go.verdict(r, v)
      elseif type(v) == 'table' and v.range then
        beyond = beyond or v
      else
        error(v, 0)
      end
    end
    if beyond then error(beyond, 0) end
    return replies
  end

  -- fill_gaps stores the absent cells before one that is stored.
  local function fill_gaps(r, clauses, position)
    local cell = r.state.cells[r.cell + 1]
    for i = 0, cell and cell.old and r.cell - 1 or -1 do
      local earlier = r.state.cells[i + 1]
      if not earlier or not earlier.old and not earlier.fields[1] then cells.store(clauses[position - r.cell + i], r.slack) end
    end
  end

  all_of = {
    -- misplaced returns the error of a SHARE. If there is none, it notes which clauses have what the clause shares.
    misplaced = function(r)
      if not share then make_shares() end
      if r.kind == 'THROTTLE' then return 'ERR a THROTTLE clause cannot have SHARE: put it into a WINDOW, QUOTA or LEASE clause after this one' end
      local clauses, first, units = all_of.clauses, r.place - 1, r.limiter.has_units
      local f = clauses[first]
      if not f then return 'ERR SHARE needs a clause before it: put the shared limit first, such as THROTTLE 99 100 1m' end
      if f.limiter.frees or units and not f.limiter.has_units then return 'ERR SHARE does not fit the clause before: only a LEASE clause can share slots, and RELEASE has none to share' end
      r.links, r.fronts = (f.links or 0) + 1, {f}
      if not units and f.limiter.has_units then r.holds = true end
      while r.holds and first > 1 and clauses[first - 1].limiter.has_units do
        first = first - 1
        r.fronts[#r.fronts + 1] = clauses[first]
      end
      return r.links > 4 and 'ERR at most 4 SHARE clauses in a row'
    end,

    never = function(r) return r.quantity > (r.weight and share.most(r) or r.limit) end,

    run = function()
      local clauses = {}
      all_of.clauses = clauses
      local wrong, misplaced = plan(clauses)
      local may_lock = not parse(clauses, wrong)
      if wrong then go.fail(wrong) end
      if misplaced then go.fail('ERR the keys after KEY must be those of the script, in the same order') end
      go.read_clock()
      for n = 1, #clauses do -- whose id holds nothing may never be admitted, and then no lockout begins
        local r = clauses[n]
        if not r.limiter.has_units then
          r.limiter.load(r)
          may_lock = may_lock and not lease.lost(r)
        end
      end
      local replies = judge(clauses, may_lock)
      if share then share.judge_all(clauses, replies, may_lock) end
      local denied = decide(replies)[1] ~= 0
      for n = 1, #clauses do
        local r, limiter = clauses[n], clauses[n].limiter
        if denied and replies[n][1] == 0 then
          local v = limiter.judge(r, 0, false)
          v.limited, v.retry = false, 0
          replies[n] = go.verdict(r, v)
        end
        if denied and r.weight then share.remains(r, replies, n, 0) end
        limiter.apply(r, denied)
        if r.cell > 0 then fill_gaps(r, clauses, n) end
        if limiter.finish and (not clauses[n + 1] or clauses[n + 1].key ~= r.key) then limiter.finish(r.state, r.key) end
      end
      return decide(replies)
    end,
  }
end

-- The commands.

local read_only = string.upper(string.sub(name or '', -3)) == '_RO'
local function run()
  local command = string.upper(name or '')
  local base = read_only and string.sub(command, 1, -4) or command
  local least = ({['GO.THROTTLE'] = 5, ['CL.THROTTLE'] = 5, ['GO.WINDOW'] = 4, ['GO.QUOTA'] = 4, ['GO.LEASE'] = 5, ['GO.RELEASE'] = 3, ['GO.ALL'] = 4})[base]
  local is_all, is_release, redis_cell = base == 'GO.ALL', base == 'GO.RELEASE', base == 'CL.THROTTLE'
  if not least or read_only and (is_release or redis_cell) then
    if word.has(' GO.POLICY GO.INFO GO.TOP GO.HELP ', base) then go.fail('ERR ' .. base .. ' needs the module') end
    go.fail(word.named("ERR unknown command '<word>': the script has the commands of gothrottle that decide", name or ''))
  end
  if #KEYS == 0 then go.fail('ERR the script needs the key in KEYS: write EVALSHA sha 1 key ' .. base .. ' ..') end
  if argc + 1 < least or redis_cell and argc > 5 then
    local syntax = redis_cell and ': use CL.THROTTLE key max_burst count period [quantity]' or ''
    go.fail("ERR wrong number of arguments for '" .. string.lower(command) .. "' command" .. syntax)
  end
  if #KEYS > 1 and not is_all then go.fail('ERR ' .. base .. ' takes one key') end
  if is_release then return release() end
  if not is_all then return go.one(string.sub(base, 4), redis_cell) end
  make_all()
  return all_of.run()
end

local ok, result = pcall(run)
if not ok and type(result) == 'table' and result.text then return answer(nil, result.text) end
if not ok then error(result, 0) end
if read_only then writes, late = {}, {} end
return answer(result)
