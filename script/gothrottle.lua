-- gothrottle without the module: the same words, replies, errors and keys, for servers that load no modules.
--
--   EVAL "$(cat gothrottle.lua)" 1 user:42 GO.THROTTLE 15 30 1m
--
-- The keys come first, then the words of the module's commands without the first key. docs/managed.md says what differs.
-- Numbers are doubles: each is whole and at most 2^53, or the call is an error. An instant is two numbers: seconds since the
-- Unix epoch, and ns. A length of time is ns and a fraction in 1/count ns. Everything is read and judged before the first
-- write, because a script that fails half-way keeps what it wrote.

local argc, name, format, match, whole = #ARGV, ARGV[1], string.format, string.match, math.tointeger
local RANGE = 9007199254740992 -- 2^53
local MORE = 1 + 1e-12 -- so much more than another number is more for certain, whatever doubles cut off
local now_s, now_ns -- set by what reads the clock first; it is read once

-- Plain calls come first: they have no option but UPTO, LOCKOUT, ALIGN and MS, or are GO.ALL of such clauses. They need no
-- closures and few tables, and cost a quarter of what the general part costs. A call that turns out not to be plain begins
-- there again: nothing is written before everything is judged.

local kind, ro, all, first, plain = false, false, name == 'GO.ALL', KEYS[1], false
local denied, writes, parts, late, before, reply = false, nil, nil, nil, nil, nil
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
if kind and first then
  local text, at, words, keys, ms = table.concat(ARGV, ' ') .. ' ', #name + 2, 1, 1, ARGV[argc] == 'MS'
  local cell, fields, known, held, held_from, held_slack = 0, 0, 0, nil, 0, 0 -- of a key of several cells; held is their write
  if all then
    kind, at = match(text, '^(%u+) ()', at)
    late, parts, before, words = {[first] = true}, {}, {}, 2
  end
  local time = redis.pcall('TIME')
  plain = not time.err
  if plain then now_s, now_ns = time[1] + 0.0, time[2] * 1000.0 end
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
    plain = limit and n ~= ' ' and (not id or #id <= 512)
    if not plain then break end
    if n ~= '' then words = words + 1 end
    local rest, key, next_kind, next_at = ms and 3 or 0, nil, nil, nil
    local last = #text + 1 - at == rest
    if not last and not all and not id and string.sub(text, at, at + 4) == 'UPTO ' then upto, at, words = true, at + 5, words + 1 end
    if not last and kind == 'THROTTLE' and not upto then
      local time, unit, after = match(text, '^LOCKOUT (%d+)([smhd]?) ()', at)
      if time then
        lockout, at, words = time * ({[''] = ms and 0.001 or 1.0, s = 1.0, m = 60.0, h = 3600.0, d = 86400.0})[unit], after, words + 2
        plain = lockout >= 0.001 and lockout <= RANGE / 1e9
      end
    end
    if not last and kind == 'QUOTA' then
      local sign, hours, minutes, after = match(text, '^ALIGN ([-+])([0-2]%d):([0-5]%d) ()', at)
      align = sign and hours + 0 < 24 and (hours * 3.6e9 + minutes * 6e7) * (sign == '+' and -1 or 1) or nil
      if not sign then
        after = match(text, '^ALIGN 0 ()', at)
        align = after and 0
      end
      if align then at, words = after, words + 2 end
    end
    last = #text + 1 - at == rest
    if not last and all then key, next_kind, next_at = match(text, '^KEY (%S+) (%u+) ()', at) end
    local further = not key and not last and all and kind == 'THROTTLE' and match(text, '^THROTTLE ()', at)
    -- A word with a blank in it isn't plain.
    if last then plain = plain and words + (ms and 1 or 0) == argc and #KEYS == keys else plain = plain and (key or further) end
    if name == 'CL.THROTTLE' and (unit ~= '' or ms or upto or lockout) then plain = false end

    period, limit, n = period + 0.0, limit + 0.0, n == '' and 1.0 or n + 0.0
    if unit == '' then
      if not ms then period = period * 1e3 end
    elseif unit == 's' then
      period = period * 1e3
    elseif unit == 'm' then
      period = period * 6e4
    elseif unit == 'h' then
      period = period * 3.6e6
    elseif unit == 'd' then
      period = period * 8.64e7
    elseif unit ~= 'ms' then
      plain = false
    end
    -- The reply: wait, room and span are those after the call, room0 and span0 those before it. They are in 1/per of the clock's
    -- units. The key expires from this ms on, or so many ms later.
    local limited, asked, wait, room, span, room0, span0, sixth, per = 0, n, nil, 0.0, 0.0, 0.0, 0.0, nil, 1.0
    local command, word1, word2, word3, word4, write, drop, fresh, from, slack -- a write is a list if it is longer
    local now, us = now_s * 1e6 + now_ns / 1000, period * 1000
    if not plain or period < 1 then
      plain = false
    elseif kind == 'THROTTLE' then
      local ns = period * 1e6
      limit, count = limit + 1, count + 0.0
      plain = limit <= 1e12 and count >= 1 and count <= 1e12 and ns >= count and ns <= RANGE and (n <= limit or upto and n <= 1e12)
      -- A unit drains in the time interval.
      local interval = plain and ns / count or 1.0
      if plain and ns % count > 0 then
        local a, b = ns, count
        while b > 0 do
          local rest = a % b -- not in one assignment: some interpreters do its parts one after another
          a = b
          b = rest
        end
        interval, per = ns / a, count / a
      end
      local capacity = limit * interval
      if plain and capacity < RANGE then
        local state, f0, f1, f2, f3 = nil, '0', '1', '2', '3'
        if cell > 0 then
          f0, f1, f2, f3 = format('%d', 4 * cell), format('%d', 4 * cell + 1), format('%d', 4 * cell + 2), format('%d', 4 * cell + 3)
        end
        if per == 1 then
          state = redis.pcall('HMGET', KEYS[1], f0, f1)
        else
          state = redis.pcall('HMGET', KEYS[1], f0, f1, f2, f3)
        end
        if cell == 0 then fields, known = redis.pcall('HLEN', KEYS[1]), 0 end
        known = known + (per == 1 and 2 or 4)
        local stored = interval % 1e9 == 0 and format('%d', interval / 1e9) or format('%d', -interval)
        local used, fraction = 0.0, 0.0
        fresh, plain = fields == 0, false
        if fresh then
          plain = not state.err
        elseif state[2] == stored and (per == 1 or state[4] == format('%d', per)) and (further or fields == known) then
          local s, rest = match(state[1] or '', '^([1-9]%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d%d%d%d)$')
          if per > 1 then fraction = match(state[3] or '', '^[1-9]%d*$') or state[3] == '0' and 0.0 end
          if s and fraction then
            fraction = fraction + 0.0
            used = (s - now_s) * 1e9 + (rest - now_ns)
            plain = used < (RANGE - capacity) / per - 1 and fraction < per
            if used < 0 then used = 0.0 else used = used * per + fraction end
          end
        end
        if upto and n > 0 then
          asked = capacity - used
          asked = asked > interval and (asked - asked % interval) / interval or 1.0
          if asked > n then asked = n end
        end
        local after = used + asked * interval
        if after > capacity then
          limited, wait, after, asked = 1, after - capacity, used, 0
          plain = plain and not lockout -- it may begin
        elseif n > 0 then
          if asked < n then wait = after + interval - capacity end
          fraction = after % per
          local left = (after - fraction) / per + now_ns
          local rest = left % 1e9
          local s = now_s + (left - rest) / 1e9
          local tat, drain = format('%d%09d', s, rest), capacity % per > 0 and capacity / per + 1 or capacity / per
          if fraction > 0 then rest = rest + 1 end
          local part = rest % 1e6
          from = s * 1000 + (rest - part) / 1e6 + (part > 0 and 1 or 0)
          slack = (drain < ns and drain or ns) / 4e6
          plain = plain and tat ~= state[1]
          command, word1, word2 = 'HSET', f0, tat
          if fresh then word3, word4 = f1, stored end
          if held then
            write = held
            write[#write + 1], write[#write + 2] = f0, tat
            if fresh then write[#write + 1], write[#write + 2] = f1, stored end
          elseif further or fresh and per > 1 then
            write = {KEYS[1], command, f0, tat, word3, word4}
          end
          if per > 1 then
            fraction = format('%d', fraction)
            if fraction ~= state[3] and write then
              write[#write + 1], write[#write + 2] = f2, fraction
            elseif fraction ~= state[3] then
              word3, word4 = f2, fraction
            end
            if fresh then write[#write + 1], write[#write + 2] = f3, format('%d', per) end
          end
          if held then from, slack = from > held_from and from or held_from, slack < held_slack and slack or held_slack end
          held = nil
          if further then held, held_from, held_slack, command = write, from, slack, nil end
        elseif further or cell > 0 then
          plain = false
        end
        room, span, span0 = capacity - after, after, used
        room = room < 0 and 0 or (room - room % interval) / interval
        if all and used < capacity then room0 = (capacity - used - (capacity - used) % interval) / interval end
        per, sixth = per * 1000, upto and asked or nil
      else
        plain = false
      end
    elseif limit < 1 or limit > 1e12 or period > 3153600000000 or n > limit and not upto or n > 1e12 then
      plain = false
    elseif kind == 'QUOTA' then
      local state = redis.pcall('GETRANGE', KEYS[1], '0', '36')
      local used, ends = 0.0, 0.0
      if state == '' then
        fresh = redis.pcall('PEXPIRETIME', KEYS[1]) == -2
        plain = fresh
      else
        local n, at = match(type(state) == 'string' and state or '', '^([1-9]%d*)@([0-8]%d+)000$')
        if n then used, ends = n + 0.0, at + 0.0 end
        plain = n and used <= 1e15 and #at == 16 and ends >= 1e6
        if ends <= now then used = 0.0 end
      end
      room0, span0 = used < limit and limit - used or 0.0, used > 0 and ends - now or 0.0
      if upto and n > 0 then asked = n < room0 and n or room0 > 1 and room0 or 1.0 end
      if used + asked > limit then
        limited, wait, asked = 1, span0, 0
      elseif n > 0 then
        if used == 0 then ends = now + us - (align and (now - align) % us or 0) end
        used = used + asked
        if asked < n then wait = ends - now end
        command, word1 = 'SET', format('%d@%016d000', used, ends)
        from, slack = (ends - ends % 1000) / 1000 + (ends % 1000 > 0 and 1 or 0), period / 4
      end
      room, span, sixth = used < limit and limit - used or 0.0, used > 0 and ends - now or 0.0, upto and asked or nil
    elseif kind == 'WINDOW' then
      local newest, oldest = redis.pcall('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES'), nil
      local used, total, at, gone, also = 0.0, 0.0, 0.0, nil, nil
      local weight, first, first_at = 0.0, 0.0, 0.0 -- of the newest entry; total and time of the first live one
      fresh = #newest == 0
      plain = fresh and not newest.err and us <= 7e13
      if newest[1] and us <= 7e13 then
        oldest = redis.pcall('ZRANGE', KEYS[1], '-1', '-1', 'WITHSCORES')
        local word = match(newest[1], '^\1([1-9a-z][0-9a-z]*)$')
        weight, at = word and '1', -(tonumber(newest[2]) or 0.0)
        if not word then word, weight = match(newest[1], '^\1([1-9a-z][0-9a-z]*):([1-9a-z][0-9a-z]*)$') end
        if word and #word <= 10 and #weight <= 10 and (weight ~= '1' or #newest[1] == 1 + #word) and not oldest.err
          and at > 0 and at <= now and at % 1 == 0 then
          total, weight = tonumber(word, 36) + 0.0, tonumber(weight, 36) + 0.0
          -- The first live entry is one of the two oldest, or this isn't plain.
          first_at = -(tonumber(oldest[2]) or 0.0)
          local entry = oldest[1]
          plain = entry and first_at >= 0 and first_at % 1 == 0
          if first_at <= now - us then
            local second = redis.pcall('ZRANGE', KEYS[1], '-2', '-2', 'WITHSCORES')
            gone = entry
            entry = second[1]
            first_at = -(tonumber(second[2] or -now) or 0.0)
            if entry and first_at <= now - us then
              also = entry
              entry = nil
            end
          end
          if gone and not entry then plain = plain and (also or gone) == newest[1] end -- everything is gone
          if gone and plain and gone ~= newest[1] then
            local word = match(gone, '^\1([1-9a-z][0-9a-z]*)$') or match(gone, '^\1([1-9a-z][0-9a-z]*):[2-9a-z][0-9a-z]*$')
              or match(gone, '^\1([1-9a-z][0-9a-z]*):1[0-9a-z]+$')
            plain = word and #word <= 10 and #gone <= 22 and tonumber(word, 36) < total
          end
          if plain and entry then
            local word = match(entry, '^\1([1-9a-z][0-9a-z]*)$')
            local own = word and '1'
            if not word then word, own = match(entry, '^\1([1-9a-z][0-9a-z]*):([1-9a-z][0-9a-z]*)$') end
            plain = word and #word <= 10 and #own <= 10 and (own ~= '1' or #entry == 1 + #word) and first_at <= at
              and first_at % 1 == 0
            if plain then
              first = tonumber(word, 36) + 0.0
              used = total - first + tonumber(own, 36)
              plain = first <= total and used < RANGE
            end
          end
        end
      end
      room0, span0 = used < limit and limit - used or 0.0, used > 0 and at + us - now or 0.0
      if upto and n > 0 then asked = n < room0 and n or room0 > 1 and room0 or 1.0 end
      if used + asked > limit then
        limited, wait = 1, first_at + us - now
        plain = plain and first - total >= asked - limit
        asked = 0
      elseif n > 0 and plain then
        plain = asked == n
        local share = at == now
        if limit > 120 and at > 0 and not share and at % us < now % us and now - at < us then
          local a, b = at % us * 120, now % us * 120
          share = (a - a % us) == (b - b % us)
        end
        local own = share and n + (weight < used and weight or used) or n
        local rest, member, digits = own > 1 and own or 0, '', '0123456789abcdefghijklmnopqrstuvwxyz'
        while rest > 0 do
          local d = rest % 36
          member, rest = string.sub(digits, d + 1, d + 1) .. member, (rest - d) / 36
        end
        rest, member = total + n, own > 1 and ':' .. member or ''
        plain = plain and rest < 3656158440062976
        while rest > 0 do
          local d = rest % 36
          member, rest = string.sub(digits, d + 1, d + 1) .. member, (rest - d) / 36
        end
        command, word1, word2 = 'ZADD', format('%d', -now), '\1' .. member
        if share then
          also = gone
          gone = newest[1]
        end
        if gone then drop = {KEYS[1], 'ZREM', gone, also} end
        used, at, from, slack = used + n, now, now + us, period / 4
        from = (from - from % 1000) / 1000 + (from % 1000 > 0 and 1 or 0)
      end
      room, span, sixth = used < limit and limit - used or 0.0, used > 0 and at + us - now or 0.0, upto and asked or nil
    else
      local newest = redis.pcall('ZRANGE', KEYS[1], '0', '1', 'WITHSCORES')
      local used, own, member, latest, ends = 0, nil, '\2' .. id, 0.0, now
      fresh = #newest == 0
      if newest.err then plain = false end
      for i = 1, #newest, 2 do
        local time = -(tonumber(newest[i + 1]) or 0.0)
        plain = plain and time > now and time <= RANGE and time % 1 == 0 and string.sub(newest[i], 1, 1) == '\2' and #newest[i] <= 513
        if latest == 0 and newest[i] ~= member then latest = time end
        if ends < time then ends = time end
      end
      if plain and not fresh then
        -- A lapsed lease isn't plain, so all leases hold slots.
        local lapsed = redis.pcall('ZREVRANGEBYSCORE', KEYS[1], '+inf', format('%d', -now), 'WITHSCORES', 'LIMIT', '0', '1')
        used, own = redis.pcall('ZCARD', KEYS[1]), redis.pcall('ZSCORE', KEYS[1], member)
        plain = not lapsed.err and #lapsed == 0 and type(used) == 'number' and type(own) ~= 'table'
        local score = plain and own and tonumber(own) or 0.0
        plain = plain and -score <= RANGE and score % 1 == 0
      end
      plain = plain and (own or used < limit)
      if plain then
        room0, span0, sixth = used < limit and limit - used or 0.0, ends - now, own and 1 or 0
        ends = now + us > latest and now + us or latest
        room, span = room0 > 1 - sixth and room0 - (1 - sixth) or 0.0, ends - now
        command, word1, word2, slack = 'ZADD', format('%d', -(now + us)), member, period / 4
        from = (ends - ends % 1000) / 1000 + (ends % 1000 > 0 and 1 or 0)
      end
    end
    if not plain then break end

    if command and not denied and not ro then
      local to, expiry = from + (slack < 1000 and 1000 or slack - slack % 1), fresh and -2 or redis.pcall('PEXPIRETIME', KEYS[1])
      plain = type(expiry) == 'number'
      if not plain then break end
      local expires = expiry < from or expiry > to
      local may = (expires or drop) and redis.acl_check_cmd
      if expires then to = format('%d', to) end
      if kind == 'QUOTA' then
        word2, word3 = expires and 'PXAT' or 'KEEPTTL', expires and to or nil
        expires = false
      end
      if all or write then
        writes = writes or {}
        local list = all and fresh and late or writes
        list[#list + 1] = write or {KEYS[1], command, word1, word2, word3, word4}
        list[#list + 1] = drop
        if expires then list[#list + 1] = {KEYS[1], 'PEXPIREAT', to} end
      elseif may and (expires and not may('PEXPIREAT', KEYS[1], '1') or drop and not may('ZREM', KEYS[1], 'x')) then
        plain = false
        break
      else
        local done
        if word4 then
          done = redis.pcall(command, KEYS[1], word1, word2, word3, word4)
        elseif word3 then
          done = redis.pcall(command, KEYS[1], word1, word2, word3)
        else
          done = redis.pcall(command, KEYS[1], word1, word2)
        end
        plain = type(done) ~= 'table' or not done.err -- the general part words the error
        if not plain then break end
        if drop and drop[4] then redis.call('ZREM', KEYS[1], drop[3], drop[4]) elseif drop then redis.call('ZREM', KEYS[1], drop[3]) end
        if expires then redis.call('PEXPIREAT', KEYS[1], to) end
      end
    end
    per = per * (ms and 1e3 or 1e6)
    local rest = span % per
    span = (span - rest) / per + (rest > 0 and 1 or 0)
    if wait then
      rest = wait % per
      wait = (wait - rest) / per + (rest > 0 and 1 or 0)
    end
    reply = {limited, limit, room, wait or -1, span, sixth}
    if all then
      rest = span0 % per
      denied = denied or limited == 1
      parts[#parts + 1], before[#before + 1] = reply, {room0, (span0 - rest) / per + (rest > 0 and 1 or 0)}
    end
    if last then break end
    plain = #parts < 32
    if key then
      keys, kind, at, words, cell = keys + 1, next_kind, next_at, words + 3, 0
      plain = plain and key == KEYS[keys] and not late[key]
      late[key], KEYS[1] = true, key
    else
      at, words, cell = further, words + 1, cell + 1
    end
  end
  if not plain then KEYS[1] = first elseif not all and not writes and not whole then return reply end
end

local function up(a, b) -- divides a >= 0 and rounds up
  local rest = a % b
  return (a - rest) / b + (rest > 0 and 1 or 0)
end

-- spread returns the words of a list from i on.
local function spread(list, i)
  if i >= #list then return list[i] end
  return list[i], spread(list, i + 1)
end

-- refused returns the command of a write that the user may not run. A write is a list of the key, the command and its words.
-- The server may refuse the first one, because then nothing has been written.
local function refused(writes)
  for i = 2, redis.acl_check_cmd and #writes or 0 do
    local w = writes[i]
    if not redis.acl_check_cmd(w[2], w[1], w[3] or '', w[4] or '') then return w[2] end
  end
end

-- decide returns the reply of GO.ALL.
local function decide(replies)
  local found, longest, least = 1, -1, math.huge
  for i = 1, #replies do
    local r = replies[i]
    local wait = r[4] < 0 and math.huge or r[4]
    if r[1] ~= 0 and wait > longest then
      found, longest = i, wait
    elseif longest < 0 and r[3] < least then
      found, least = i, r[3]
    end
  end
  local r = replies[found]
  return {r[1], r[2], r[3], r[4], r[5], found - 1, spread(replies, 1)}
end

local function integers(list)
  for i = 1, whole and #list or 0 do
    if type(list[i]) == 'table' then integers(list[i]) else list[i] = whole(list[i]) end
  end
  return list
end

if plain then
  if denied or ro then writes, late = nil, nil end
  if late and not writes then writes = {} end
  for i = 1, late and #late or 0 do writes[#writes + 1] = late[i] end
  plain = not writes or not refused(writes)
  for i = 1, plain and writes and #writes or 0 do
    local w = writes[i]
    KEYS[1] = w[1]
    local done = redis.pcall(w[2], KEYS[1], spread(w, 3))
    if type(done) == 'table' and done.err then
      if i > 1 then error(done, 0) end
      plain = false -- the general part words the error
      break
    end
  end
  for i = 1, denied and #parts or 0 do
    if parts[i][1] == 0 then parts[i][3], parts[i][5] = before[i][1], before[i][2] end
  end
  if plain then return integers(all and decide(parts) or reply) end
  KEYS[1] = first
end

-- The general part: all calls that aren't plain. Functions are fields of tables, because each local that functions share makes
-- all of them dearer. A table is made when a call needs it, and a function that few calls need is made inside its caller.

local go, throttle, zset, window, quota, lease, all
local make = {} -- makes the limiter of a kind

go = {
  MOST = 1e12, CENTURY = 3153600000000, DAY = 86400000,
  writes = {}, late = {}, -- As in the module, keys that are made come late.
  made = {}, kinds = {},

  fail = function(text) error({text = text}, 0) end,
  out_of_range = function() error({text = 'ERR a number is out of the range of the script: use the module', range = true}, 0) end,
  wrong_type = function() go.fail('WRONGTYPE Operation against a key holding the wrong kind of value') end,

  -- limiter returns what decides for a kind of limiter; nil if there is no such kind.
  limiter = function(kind)
    if not go.kinds[kind] and make[kind] then go.kinds[kind] = make[kind]() end
    return go.kinds[kind]
  end,

  -- refused fails with the server's error. In scripts servers don't begin a refusal by its code.
  refused = function(text)
    go.fail((string.gsub(string.gsub(text, '^ERR (The user executing)', 'NOPERM %1'), '^ERR (ACL failure)', 'NOPERM %1')))
  end,

  -- call runs a command on a key, which is moved to KEYS[1]: some proxies want a literal index in each call.
  call = function(key, command, ...)
    KEYS[1] = key
    local reply = redis.pcall(command, KEYS[1], ...)
    if type(reply) == 'table' and reply.err then go.refused(reply.err) end
    return reply
  end,

  -- try runs a command that may find another type at the key: then it returns nil.
  try = function(key, command, ...)
    KEYS[1] = key
    local reply = redis.pcall(command, KEYS[1], ...)
    if type(reply) ~= 'table' or not reply.err then return reply end
    if not match(reply.err, 'WRONGTYPE') then go.refused(reply.err) end
  end,

  write = function(list)
    local writes = go.made[list[1]] and go.late or go.writes
    writes[#writes + 1] = list
  end,

  -- commit makes sure that the user may run all writes, then runs them. Other reasons to refuse hold for the first write too.
  commit = function()
    local writes = go.writes
    for i = 1, #go.late do writes[#writes + 1] = go.late[i] end
    local command = refused(writes)
    if command then go.fail("NOPERM this user has no permissions to run the '" .. string.lower(command) .. "' command") end
    for i = 1, #writes do go.call(writes[i][1], spread(writes[i], 2)) end
  end,

  -- expire returns the new expiry in ms, nil if the old one is good: from the ms from on, at most slack ms later. A fresh key
  -- has none.
  expire = function(key, from, slack, fresh)
    local to = from + (slack < 1000 and 1000 or slack - slack % 1)
    go.made[key] = fresh
    if fresh then return to end
    KEYS[1] = key
    local reply = redis.pcall('PEXPIRETIME', KEYS[1])
    if type(reply) == 'table' then
      if match(reply.err, 'user') or match(reply.err, 'ACL') then go.refused(reply.err) end
      return to -- a server without this command
    end
    return (reply < from or reply > to) and to or nil
  end,

  div = function(a, b) return (a - a % b) / b end, -- rounds down

  -- Words. Times are in ms.

  looks_numeric = function(word) return match(word, '^[-+%d]') ~= nil or word == '' end,

  -- shown is a word as an error has it.
  shown = function(word) return (string.gsub(string.sub(word, 1, 64), '[^ -~]', '?')) end,

  -- has reports whether a word is in a list of words with blanks around.
  has = function(list, word) return string.find(list, ' ' .. word .. ' ', 1, true) end,

  -- in_words returns such a list with commas.
  in_words = function(list, last)
    return (string.gsub(string.gsub(match(list, '^ (.*) $'), ' ', ', '), ', ([%w_]+)$', ' ' .. last .. ' %1'))
  end,

  integer = function(word, least, most, what)
    if not match(word, '^[-+]?%d+$') then go.fail('ERR ' .. what .. ' is not an integer') end
    local n = tonumber(word) + 0.0
    if n < least or n > most then go.fail(format('ERR %s must be between %d and %d', what, least, most)) end
    return n
  end,

  -- split_time returns a number and the ms of its unit; nil if the word is not a time.
  split_time = function(word, ms)
    local digits, suffix = match(word, '^([-+]?%d+)(%l*)$')
    if suffix == 'ms' then ms = 1 elseif suffix == 's' then ms = 1000 elseif suffix == 'm' then ms = 60000
    elseif suffix == 'h' then ms = 3600000 elseif suffix == 'd' then ms = go.DAY elseif suffix ~= '' then return nil end
    return tonumber(digits) + 0.0, ms
  end,

  time_word = function(word, unit, least, what, examples)
    local n, ms = go.split_time(word, unit)
    if not n then go.not_a_time(word, what, examples) end
    if n < least or n * ms > go.CENTURY then go.fail(format('ERR %s must be between %s and 100 years', what, least == 0 and '0' or '1 ms')) end
    return n * ms
  end,

  not_a_time = function(word, what, examples)
    local units, digits, letters = {'minutes', 'mins', 'seconds', 'secs', 'hours', 'hrs', 'days', 'milliseconds', 'msecs', 'months',
      milliseconds = 'ms', msecs = 'ms', months = 'mo'}, match(word, '^(%d+)(%D.*)$')
    for i = 1, digits and #word <= 20 and #units or 0 do
      local unit = units[i]
      if string.sub(unit, 1, #letters) == string.lower(letters) then
        go.fail('ERR ' .. what .. ' is not a time: did you mean ' .. digits .. (units[unit] or string.sub(unit, 1, 1)) .. '?')
      end
    end
    go.fail('ERR ' .. what .. ' is not a time: use ' .. examples)
  end,

  period_word = function(r, word)
    if r.redis_cell then
      if not match(word, '^[-+]?%d+$') then go.fail('ERR period is not an integer: CL.THROTTLE takes seconds without a unit') end
      local n = tonumber(word) + 0.0
      if n < 1 or n > go.CENTURY / 1000 then go.fail('ERR period must be between 1 s and 100 years') end
      return n * 1000
    end
    local months = match(word, '^([-+]?%d+)mo$')
    if not months then
      return go.time_word(word, r.unit, 1, 'period', 'an integer, or one with a unit such as 250ms, 5s, 15m, 1h, 1d, or 1mo for a QUOTA')
    end
    if r.kind ~= 'QUOTA' then go.fail('ERR only the period of a QUOTA can be in months: use days, such as 30d') end
    r.months = tonumber(months) + 0.0
    if r.months < 1 or r.months > 1200 then go.fail('ERR period must be between 1mo and 1200mo') end
    return r.months * 28 * go.DAY
  end,

  -- read reads the period, the quantity and the word after an option of a request.
  read = function(r)
    local opts, word = r.opts, r.operand and ARGV[r.operand]
    r.period = go.period_word(r, ARGV[r.period_word])
    if r.quantity_word then r.quantity = go.integer(ARGV[r.quantity_word], -go.MOST - 1, go.MOST + 1, 'quantity') end
    if opts.RAISE then go.integer(format('%d', r.quantity), 0, go.MOST + 1, 'quantity') end
    if r.share_word and r.share_word < (r.operand or 0) then go.read_weight(r) end
    if word and opts.ALIGN then
      local sign, hours, minutes = match(word, '^([-+])(%d%d):(%d%d)$')
      local n, ms = go.split_time(word, r.unit)
      if sign and tonumber(hours) <= 23 and tonumber(minutes) <= 59 then
        n, ms = (hours * 60 + minutes) * (sign == '+' and -1.0 or 1.0), 60000
      end
      if not n then go.fail('ERR offset is not a time: use one such as -1h, or a UTC offset such as +01:00') end
      r.offset = n * ms
      if r.offset < -go.CENTURY or r.offset > go.CENTURY then go.fail('ERR offset must be within 100 years either way') end
    elseif word and opts.RESERVE then
      r.max_wait = go.time_word(word, r.unit, 0, 'maxwait', 'an integer, or one with a unit such as 500ms or 5s')
    elseif word and opts.LOCKOUT then
      r.lockout = go.time_word(word, r.unit, 1, 'the time of LOCKOUT', 'an integer, or one with a unit such as 15m or 1h')
    end
    go.read_weight(r)
  end,

  read_weight = function(r)
    if r.share_word then r.weight = go.integer(ARGV[r.share_word], 1, 1000, 'weight') end
  end,

  -- lacks returns the error of an option without the word after it; nil if none belongs there.
  lacks = function(option)
    if option == 'ALIGN' then return 'ALIGN needs an offset, such as -1h or +01:00' end
    if option == 'RESERVE' then return 'RESERVE needs a maxwait, such as 500ms' end
    if option == 'LOCKOUT' then return 'LOCKOUT needs a time, such as 15m' end
    if option == 'SHARE' then return 'SHARE needs a weight, such as 1' end
  end,

  find_option = function(word)
    word = string.upper(word)
    return not match(word, ' ') and go.has(' MS UPTO EXACT ALIGN FORCE RESERVE LOCKOUT RAISE SHARE ', word) and word
  end,

  says_ms = function(from)
    for i = from, argc do
      if string.upper(ARGV[i]) == 'MS' then return true end
    end
  end,

  -- options reads the options from a word on. It returns those given, the place of an operand, and an error with its word.
  options = function(from, allowed)
    local opts, i, operand, mode = {}, from, nil, nil
    while i <= argc do
      local o = go.find_option(ARGV[i])
      local excludes = o and go.has(' UPTO FORCE RESERVE LOCKOUT RAISE ', o)
      if not o or not go.has(allowed, o) then
        return opts, operand, "ERR unknown option '" .. go.shown(ARGV[i]) .. "': only " .. go.in_words(allowed, 'or') .. ' may follow', i
      elseif opts[o] then
        return opts, operand, "ERR option '" .. go.shown(ARGV[i]) .. "' given more than once"
      elseif excludes and mode then
        return opts, operand, "ERR option '" .. go.shown(ARGV[i]) .. "' cannot be combined with " .. mode
      elseif go.lacks(o) then
        i = i + 1
        if i > argc then return opts, operand, 'ERR ' .. go.lacks(o) end
        operand = i
      end
      opts[o], mode, i = true, mode or excludes and o, i + 1
    end
    return opts, operand
  end,

  -- The clock.

  read_clock = function()
    if now_s then return end
    local time = redis.pcall('TIME')
    if time.err and (match(time.err, 'user') or match(time.err, 'ACL')) then go.refused(time.err) end
    if time.err then go.fail('ERR this server refuses TIME in a script (' .. time.err .. '): use the module') end
    now_s, now_ns = time[1] + 0.0, time[2] * 1000.0
  end,

  stamp = function(s, ns) return s > 0 and format('%d%09d', s, ns) or format('%d', ns) end, -- ns since the Unix epoch

  later = function(span) -- the instant span ns from now
    local ns = now_ns + span % 1e9
    return now_s + (span - span % 1e9) / 1e9 + (ns >= 1e9 and 1 or 0), ns % 1e9
  end,

  now_us = function() return now_s * 1e6 + now_ns / 1000 end,

  -- Calls of one limiter, and replies.

  new_request = function(kind, first, key, state)
    local limiter = go.limiter(kind)
    return {kind = kind, limiter = limiter, first = first, period_word = first + limiter.arity - 1, key = key, cell = 0, opts = {}, unit = 1000,
      quantity = 1.0, limit = 0, period = 0, used = 0.0, state = state, v = false, wrong = false, next = false, share = false, settle = false}
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
    return {v.limited and 1 or 0, r.limit, v.remaining, v.retry > 0 and up(v.retry, unit) or -1, up(v.reset, unit), sixth}
  end,

  one = function(kind, redis_cell)
    local r = go.new_request(kind, 2, KEYS[1], {asked = 1})
    local limiter, rest, wrong, word = r.limiter, 2 + r.limiter.arity, nil, nil
    r.redis_cell = redis_cell
    if limiter.has_units and ARGV[rest] and (redis_cell or go.looks_numeric(ARGV[rest])) then
      r.quantity_word = rest
      rest = rest + 1
    end
    if rest <= argc then
      r.opts, r.operand, wrong, word = go.options(rest, limiter.options)
      if word and limiter.has_units and go.looks_numeric(ARGV[word]) then
        wrong = "ERR '" .. go.shown(ARGV[word]) .. "' is in the wrong place: quantity must come right after the period"
      end
      r.opts.MS = r.opts.MS or wrong and go.says_ms(rest)
      r.opts.FORCE = r.opts.FORCE or r.opts.RAISE -- which forces what is missing
      r.unit = r.opts.MS and 1 or 1000
    end
    r.wrong = wrong
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

-- THROTTLE: a cell of a hash.

function make.THROTTLE()
  throttle = {
    words = ' max_burst count period ', arity = 3, options = ' MS UPTO FORCE RESERVE LOCKOUT RAISE ', clause_options = ' LOCKOUT ',
    has_units = true, cells = true, LAST = '9223372036854775807',

    -- A rate is units per interval: an interval is whole * per + part in 1/per ns.
    new_rate = function(ns, per) return {interval = ns, per = per, whole = go.div(ns, per), part = ns % per} end,

    span = function(rate, units)
      if rate.per == 1 then return units * rate.whole, 0.0 end
      local n = units * rate.part
      local fraction = n % rate.per
      return units * rate.whole + (n - fraction) / rate.per, fraction
    end,

    shorter = function(ns, fraction, ns2, fraction2) return ns < ns2 or ns == ns2 and fraction < fraction2 end,

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

    -- in_range makes sure that a length of time and the units in it can be reckoned with.
    in_range = function(rate, ns)
      if ns >= RANGE or rate.per > 1 and (rate.interval > RANGE or ns * rate.per / rate.interval * rate.per >= RANGE) then go.out_of_range() end
    end,

    -- units returns how many units drain in a length of time, and the rest of it in 1/per ns.
    units = function(rate, ns, fraction)
      if rate.per == 1 then return (ns - ns % rate.interval) / rate.interval, ns % rate.interval end
      local n = (ns * rate.per + fraction) / rate.interval
      n = n - n % 1
      local a, b = throttle.span(rate, n) -- n may be one too many or too few
      if throttle.shorter(ns, fraction, a, b) then
        n = n - 1
        a, b = throttle.span(rate, n)
      else
        local c, d = throttle.span(rate, n + 1)
        if not throttle.shorter(ns, fraction, c, d) then n, a, b = n + 1, c, d end
      end
      a, b = throttle.minus(rate, ns, fraction, a, b)
      return n, a * rate.per + b
    end,

    units_up = function(rate, ns, fraction)
      local n, rest = throttle.units(rate, ns, fraction)
      return rest > 0 and n + 1 or n
    end,

    -- convert returns how long what drains in a length of time takes to drain at another rate.
    convert = function(ns, fraction, from, to)
      local n, rest = throttle.units(from, ns, fraction)
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
      a, b = throttle.span(to, n)
      return throttle.plus(to, a, b, go.div(quotient, to.per), quotient % to.per)
    end,

    parse = function(r)
      r.limit = go.integer(ARGV[r.first], 0, go.MOST - 1, 'max_burst') + 1
      r.count = go.integer(ARGV[r.first + 1], 1, go.MOST, 'count')
      go.read(r)
      -- (limit x period) / count against a century, exactly if that is close: products in limbs
      local years = r.limit * r.period / r.count / go.CENTURY
      if years > 0.999999 then
        local function limbs(a, b)
          local low, high = a % 1e6, go.div(a, 1e6)
          local x, y = low * (b % 1e6), low * go.div(b, 1e6) + high * (b % 1e6)
          y = y + go.div(x, 1e6)
          return high * go.div(b, 1e6) + go.div(y, 1e6), y % 1e6 * 1e6 + x % 1e6
        end
        local a, b = limbs(r.limit, r.period)
        local c, d = limbs(r.count, go.CENTURY)
        if years > 1.000001 or a > c or a == c and b > d then go.fail('ERR (max_burst + 1) x period / count must not exceed 100 years') end
      end
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
      local rate = throttle.new_rate(r.period / a * (1e6 / b), r.count / a / b)
      if r.limit * rate.interval / rate.per > RANGE or rate.per > 1 and (rate.interval > RANGE or r.limit * rate.per > RANGE)
        or r.lockout and r.lockout * 1e6 > RANGE then
        go.out_of_range()
      end
      r.rate, r.full, r.full_fraction = rate, throttle.span(rate, r.limit)
    end,

    instant = function(text) return (tonumber(string.sub(text, 1, -10)) or 0) + 0.0, string.sub(text, -9) + 0.0 end,

    -- after returns how long after now an instant is, perhaps below 0.
    after = function(text)
      local s, ns = throttle.instant(text)
      return (s - now_s) * 1e9 + (ns - now_ns)
    end,

    -- load_hash reads all cells of a hash, and makes sure that it holds nothing else.
    load_hash = function(state, key, length)
      local foreign, damaged = 'ERR the hash at this key is not a rate limiter', 'ERR the rate limiter at this key is damaged'
      local function is_integer(text)
        local digits = match(text, '^-?([1-9]%d*)$') or text == '0' and text
        return digits and (#digits < 19 or #digits == 19 and digits <= throttle.LAST)
      end
      local function is_nanos(text) -- as the server writes integers
        return (match(text, '^[1-9]%d*$') or text == '0') and #text <= 19 and (now_s < 1e9 or #text == 19)
      end
      -- decode reads the fields of a cell, and reports whether they are valid.
      local function decode(cell, f)
        for i = 1, 5 do
          if f[i] and not is_integer(f[i]) then return false end
        end
        local sign, digits = match(f[2], '^(-?)([1-9]%d*)$')
        if not digits or not is_nanos(f[1]) or f[5] and not is_nanos(f[5]) then return false end
        local interval, per = tonumber(digits) + 0.0, 1.0
        if sign == '' then
          if interval > 3153600000 then return false end
          interval = interval * 1e9
        elseif #digits > 19 or #digits == 19 and digits >= '3153600000000000000' or match(digits, '000000000$') then
          return false
        end
        if f[3] then
          per, cell.fraction = tonumber(f[4]) + 0.0, tonumber(f[3]) + 0.0
          if per < 2 or per > go.MOST or cell.fraction < 0 or cell.fraction >= per then return false end
        end
        cell.rate, cell.tat, cell.locked = throttle.new_rate(interval, per), f[1], f[5]
        return true
      end
      local last = state.asked - 1
      if length / 2 > last and length > 2 then last = length / 2 < 31 and go.div(length, 2) or 31 end
      local names = {}
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
          go.fail(f[1] and f[2] and not (is_integer(f[1]) and is_integer(f[2])) and damaged or foreign)
        else
          local cell = {fields = f, fraction = 0.0}
          if not decode(cell, f) then go.fail(damaged) end
          counted, after_gap, state.cells[i + 1] = counted + n, after_gap or gap, cell
        end
      end
      if counted ~= length or after_gap then go.fail(foreign) end
    end,

    load = function(r)
      local state = r.state
      if state.cells then return end
      state.cells = {}
      local length = go.try(r.key, 'HLEN')
      if not length then
        local text = go.try(r.key, 'GETRANGE', '0', '19')
        if not text or not match(text, '^[1-9]%d*$') or #text ~= 19 or text > throttle.LAST then go.wrong_type() end
        state.adopted = true
        state.cells[1] = {tat = text, fraction = 0.0, fields = {}}
      elseif length > 0 then
        throttle.load_hash(state, r.key, length)
      else
        state.absent = true
      end
    end,

    -- use sets what is in use at the rate of the call: r.used and r.used_fraction. r.carried says that it was converted.
    use = function(r)
      local cell = r.state.cells[r.cell + 1]
      r.used, r.used_fraction, r.carried, r.locked = 0.0, 0.0, false, 0.0
      if cell and cell.locked then
        r.locked = math.max(throttle.after(cell.locked), 0)
        if r.locked > RANGE then go.out_of_range() end
      end
      r.held = r.locked -- a lockout that this call begins doesn't count
      local used = cell and cell.tat and throttle.after(cell.tat)
      if not used or used < 0 or used == 0 and cell.fraction == 0 then return end
      local own = cell.rate
      throttle.in_range(own or r.rate, used + 1)
      if own and own.interval > RANGE then go.out_of_range() end
      r.used, r.used_fraction = used, cell.fraction
      if own and (own.interval ~= r.rate.interval or own.per ~= r.rate.per) then
        r.left, r.left_fraction, r.own, r.carried = used, cell.fraction, own, true
        r.used, r.used_fraction = throttle.convert(used, cell.fraction, own, r.rate)
        throttle.in_range(r.rate, r.used + 1)
      end
    end,

    take = function(r, v, quantity, wait, may_lock)
      if quantity > r.limit then
        v.limited = true
        return
      end
      local a, b = throttle.span(r.rate, quantity)
      local fits, fraction = throttle.minus(r.rate, r.full, r.full_fraction, a, b)
      fits = fits + wait
      if r.locked > 0 or throttle.shorter(fits, fraction, r.used, r.used_fraction) then
        v.limited = true
        if quantity > 0 then
          v.store = r.carried
          if r.lockout and may_lock and r.locked == 0 then r.locked, v.store = r.lockout * 1e6, true end
        end
        v.retry = math.max(throttle.ceil(throttle.minus(r.rate, r.used, r.used_fraction, fits, fraction)), r.locked)
      elseif quantity > 0 then
        r.after, r.after_fraction = throttle.plus(r.rate, r.used, r.used_fraction, a, b)
        throttle.in_range(r.rate, r.after)
        v.granted, v.store = quantity, true
      end
    end,

    left_units = function(r, ns, fraction)
      return (throttle.units(r.rate, throttle.minus(r.rate, r.full, r.full_fraction, ns, fraction)))
    end,

    by_mode = function(r, v, quantity, may_lock)
      local opts, rate = r.opts, r.rate
      if quantity < 0 then
        local n = throttle.units_up(rate, r.used, r.used_fraction)
        v.granted, v.store, r.after, r.after_fraction = -math.min(-quantity, n), n > 0, 0.0, 0.0
        if -quantity < n then r.after, r.after_fraction = throttle.minus(rate, r.used, r.used_fraction, throttle.span(rate, -quantity)) end
      elseif opts.FORCE then
        local used = opts.RAISE and 0 or r.used
        if quantity == 0 then return end
        if used + quantity * rate.interval / rate.per >= RANGE or quantity * rate.per > RANGE then go.out_of_range() end
        local a, b = throttle.span(rate, quantity)
        v.granted = quantity
        if not opts.RAISE then
          a, b = throttle.plus(rate, r.used, r.used_fraction, a, b)
        elseif throttle.shorter(r.used, r.used_fraction, a, b) then
          v.granted = throttle.units_up(rate, throttle.minus(rate, a, b, r.used, r.used_fraction))
        else
          v.granted = 0
          return
        end
        throttle.in_range(rate, a)
        v.store, r.after, r.after_fraction = true, a, b
      elseif opts.UPTO then
        local left = r.locked == 0 and throttle.left_units(r, r.used, r.used_fraction) or 0
        local asked = math.min(quantity, left > 1 and left or 1)
        throttle.take(r, v, asked, 0, false)
        if v.granted > 0 and asked < quantity then
          local a, b = throttle.plus(rate, r.after, r.after_fraction, throttle.span(rate, 1))
          v.retry = throttle.ceil(throttle.minus(rate, a, b, r.full, r.full_fraction))
        end
      elseif opts.RESERVE and quantity > 0 then
        throttle.take(r, v, quantity, math.min(r.max_wait * 1e6, RANGE), false)
        if v.granted > 0 then v.wait = throttle.ceil(throttle.minus(rate, r.after, r.after_fraction, r.full, r.full_fraction)) end
      else
        throttle.take(r, v, quantity, 0, may_lock)
        v.store = v.store or r.settle and r.carried
      end
    end,

    -- check_debt is about a contract's bound, so it comes before the checks of the range.
    check_debt = function(r, quantity)
      local cell, units = r.state.cells[r.cell + 1], quantity
      if cell and cell.tat then
        local used, interval = throttle.after(cell.tat), cell.rate and cell.rate.interval / cell.rate.per or r.period * 1e6 / r.count
        if used > 0 then units = not r.opts.RAISE and units + used / interval or (used * MORE + 1) / interval < units and units or 0 end
      end
      if units * r.period / r.count > go.CENTURY * MORE then go.fail('ERR what is in use would take more than 100 years to drain') end
    end,

    -- drains_to returns how long it takes until no more than limit units are in use, at the stored rate.
    drains_to = function(r, limit)
      if limit * r.own.interval / r.own.per >= RANGE then return 0.0 end
      if limit * r.own.per > RANGE then go.out_of_range() end
      return throttle.ceil(throttle.minus(r.own, r.left, r.left_fraction, throttle.span(r.own, limit)))
    end,

    judge = function(r, quantity, may_lock)
      local v = {limited = false, granted = 0, remaining = 0, retry = 0, wait = 0, reset = 0, store = false}
      if r.opts.FORCE and quantity > 0 then throttle.check_debt(r, quantity) end
      if not r.rate then throttle.set_rate(r) end
      throttle.use(r)
      r.after, r.after_fraction = r.used, r.used_fraction
      throttle.by_mode(r, v, quantity, may_lock)
      v.reset = math.max(throttle.ceil(r.after, r.after_fraction), r.locked)
      if r.carried and not v.store then -- usage drains on at its own rate
        v.reset = math.max(throttle.ceil(r.left, r.left_fraction), r.locked)
        if v.limited and quantity == 0 then v.retry = math.max(throttle.drains_to(r, r.limit), r.locked) end
      end
      if r.locked == 0 then v.remaining = throttle.left_units(r, r.after, r.after_fraction) end
      r.v = v
      return v
    end,

    -- store sets the fields of the cell after judge.
    store = function(r, slack)
      local state, rate, s, ns = r.state, r.rate, go.later(r.after)
      local cell = state.cells[r.cell + 1] or {fields = {}}
      local fields = {go.stamp(s, ns), format('%d', rate.interval % 1e9 == 0 and rate.interval / 1e9 or -rate.interval), false, false, false}
      if rate.per > 1 then fields[3], fields[4] = format('%d', r.after_fraction), format('%d', rate.per) end
      if r.locked > 0 then fields[5] = go.stamp(go.later(r.locked)) end
      cell.old, cell.fields, cell.fraction = cell.old or cell.fields, fields, r.after_fraction
      cell.tat, cell.locked = fields[1], fields[5]
      state.cells[r.cell + 1] = cell
      state.slack = math.min(slack, state.slack or slack)
    end,

    apply = function(r)
      r.slack = math.min(throttle.ceil(r.full, r.full_fraction), r.period * 1e6)
      if r.v.store then throttle.store(r, r.slack) end
    end,

    -- finish writes the changed cells of a key. A key whose cells are all void is deleted.
    finish = function(state, key)
      if not state.slack then return end
      local s, ns, set, unset = 0, 0, {key, 'HSET'}, {key, 'HDEL'}
      for i = 1, #state.cells do
        local cell = state.cells[i]
        local new, old = cell.fields, cell.old
        local a, b = throttle.instant(cell.tat)
        if cell.fraction > 0 and cell.tat ~= throttle.LAST then b = b + 1 end
        if a > s or a == s and b > ns then s, ns = a, b end
        if cell.locked then
          a, b = throttle.instant(cell.locked)
          if a > s or a == s and b > ns then s, ns = a, b end
        end
        for f = 1, old and 5 or 0 do
          if new[f] ~= old[f] and (new[f] or old[f]) then
            local list = new[f] and set or unset
            list[#list + 1] = format('%d', f == 5 and 127 + i or 4 * i + f - 5)
            if new[f] then set[#set + 1] = new[f] end
          end
        end
      end
      if s < now_s or s == now_s and ns <= now_ns then return go.write({key, 'DEL'}) end
      local expiry = go.expire(key, s * 1000 + up(ns, 1e6), state.slack / 4e6, state.adopted or state.absent)
      if state.adopted then go.write({key, 'DEL'}) end
      if #set > 2 then go.write(set) end
      if #unset > 2 then go.write(unset) end
      if expiry then go.write({key, 'PEXPIREAT', format('%d', expiry)}) end
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
      local reply = go.try(key, 'ZRANGE', '0', format('%d', most - 1), 'WITHSCORES')
      if not reply then go.wrong_type() end
      return #reply > 0 and zset.entries(reply) or nil
    end,

    -- first returns the oldest entry after a time.
    first = function(key, after)
      return zset.entries(go.call(key, 'ZREVRANGEBYSCORE', '(' .. format('%d', -after), '-inf', 'WITHSCORES', 'LIMIT', '0', '1'))[1]
    end,

    -- oldest returns up to 128 entries up to a time, the oldest first.
    oldest = function(key, up_to)
      return zset.entries(go.call(key, 'ZREVRANGEBYSCORE', '+inf', format('%d', -up_to), 'WITHSCORES', 'LIMIT', '0', '128'))
    end,
  }
end

-- WINDOW: a sorted set. A total of units is modulo 2^64, in two limbs: high * window.LIMB + low.

function make.WINDOW()
  make_zset()
  window = {
    words = ' limit period ', arity = 2, options = ' MS UPTO EXACT FORCE RAISE ', clause_options = ' EXACT SHARE ', has_units = true,
    LIMB = 3656158440062976, TURN_HIGH = 5045, TURN_LOW = 1424743591837696, -- 36^10; 2^64 in limbs
    FOREIGN_WINDOW = 'ERR the sorted set at this key is not a sliding window',

    parse = function(r)
      r.limit = go.integer(ARGV[r.first], 1, go.MOST, 'limit')
      go.read(r)
    end,

    -- number reads a canonical number of base 36.
    number = function(text)
      if text ~= '0' and not match(text, '^[1-9a-z][0-9a-z]*$') or #text > 13 then return nil end
      local high, low = tonumber(string.sub(text, 1, -11), 36) or 0, tonumber(string.sub(text, -10), 36)
      if high > window.TURN_HIGH or high == window.TURN_HIGH and low >= window.TURN_LOW then return nil end
      return high + 0.0, low + 0.0
    end,

    base36 = function(n)
      local text, digits = '', '0123456789abcdefghijklmnopqrstuvwxyz'
      repeat
        local d = n % 36
        text, n = string.sub(digits, d + 1, d + 1) .. text, (n - d) / 36
      until n == 0
      return text
    end,

    -- between returns a - b of two totals, which is exact below 2^53.
    between = function(a, b)
      local high, low = a.high - b.high, a.low - b.low
      if high * window.LIMB + low >= 2 ^ 63 then
        high, low = high - window.TURN_HIGH, low - window.TURN_LOW
      elseif high * window.LIMB + low < -2 ^ 63 then
        high, low = high + window.TURN_HIGH, low + window.TURN_LOW
      end
      return high * window.LIMB + low
    end,

    carried = function(high, low)
      if low < 0 then return high - 1, low + window.LIMB end
      if low >= window.LIMB then return high + 1, low - window.LIMB end
      return high, low
    end,

    -- plus_total adds a number, perhaps below 0, to a total.
    plus_total = function(total, n)
      local high, low = window.carried(total.high, total.low + n)
      if high > window.TURN_HIGH or high == window.TURN_HIGH and low >= window.TURN_LOW then
        high, low = window.carried(high - window.TURN_HIGH, low - window.TURN_LOW)
      elseif high < 0 then
        high, low = window.carried(high + window.TURN_HIGH, low + window.TURN_LOW)
      end
      return {high = high, low = low}
    end,

    -- entry reads an entry, which must be one of ours.
    entry = function(e)
      local total, own, cap = match(e.member, '^\1([0-9a-z]+):([0-9a-z]+):([0-9a-z]+)$')
      if not total then total, own = match(e.member, '^\1([0-9a-z]+):([0-9a-z]+)$') end
      if not total then total = match(e.member, '^\1([0-9a-z]+)$') end
      local high, low = window.number(total or '')
      local high2, low2 = window.number(own or '1')
      local high3, low3 = window.number(cap or '0')
      if not e.time or e.time > RANGE - go.CENTURY * 1000 or not high or not high2 or not high3 or own == '0' or own == '1' and not cap
        or high2 * window.LIMB + low2 > 2 ^ 62 or high3 * window.LIMB + low3 > 2 ^ 62 then
        go.fail(window.FOREIGN_WINDOW)
      end
      e.high, e.low, e.weight, e.cap = high, low, high2 * window.LIMB + low2, cap and high3 * window.LIMB + low3
      return e
    end,

    load = function(r)
      local now = go.now_us()
      r.us, r.used, r.newest, r.oldest = r.period * 1000, 0.0, nil, nil
      local newest = zset.newest(r.key, 1)
      if not newest then return end
      r.newest = window.entry(newest[1])
      if r.newest.time <= now - r.us then return end
      local oldest = zset.first(r.key, now - r.us)
      if not oldest then go.fail('ERR the rate limiter at this key is damaged') end
      r.oldest = window.entry(oldest)
      r.used, r.logged = window.use(r, oldest)
    end,

    -- use returns the units in use, and those logged, from an entry on.
    use = function(r, oldest)
      local n = window.between(r.newest, oldest)
      if oldest.time > r.newest.time or n < 0 or n >= 2 ^ 62 then go.fail('ERR the rate limiter at this key is damaged') end
      n = n + oldest.weight
      return r.newest.cap and math.min(n, r.newest.cap) or n, n
    end,

    -- part numbers the 120th parts of all periods.
    part = function(time, us)
      local rest = time % us
      local n = go.div(rest, 25) * 3 + go.div(rest % 25 * 3, 25) -- rest * 120 / 1000
      return go.div(time, us) * 120 + go.div(n, us / 1000)
    end,

    -- lapse returns the time of the first entry whose total has reached a total, by bisection.
    lapse = function(r, total)
      if window.between(r.oldest, total) >= 0 then return r.oldest.time end
      local low, found, lapse = r.oldest.time, r.newest.time - 1, r.newest.time
      for _ = 1, 64 do
        if low >= found then break end
        local middle = low + go.div(found - low, 2)
        local e = zset.first(r.key, middle)
        if not e then go.fail('ERR the rate limiter at this key is damaged') end
        if window.between(window.entry(e), total) >= 0 then found, lapse = middle, e.time else low = e.time end
      end
      return lapse
    end,

    -- append sets the entry that takes units.
    append = function(r, quantity)
      local time, newest, own = math.max(go.now_us(), r.newest and r.newest.time or 0), r.newest, r.opts.EXACT or r.limit <= 120 and not r.opts.FORCE
      r.next = window.plus_total(newest or {high = 0, low = 0}, quantity)
      r.next.time, r.next.weight, r.share = time, quantity, false
      if r.used < (r.logged or 0) and r.oldest then r.next.cap = r.used + quantity end
      if newest and (time == newest.time or not own and window.part(time, r.us) == window.part(newest.time, r.us)) then
        r.share = true
        r.next.weight = quantity + math.min(newest.weight, r.used)
      end
    end,

    judge = function(r, quantity)
      local v, used, asked = {limited = false, granted = 0, retry = 0, store = false}, r.used, quantity
      if used >= RANGE then go.out_of_range() end
      if r.opts.RAISE then asked = math.max(quantity - used, 0) end
      if r.opts.UPTO and quantity > 0 then asked = math.min(quantity, math.max(r.limit - used, 1)) end
      r.next, r.share = r.newest, false
      local lapse
      if asked < 0 then
        local given = math.min(-asked, used)
        v.granted, v.store, used = -given, given > 0, used - given
        v.forget = v.store and used == 0
        if v.store then
          local old = r.newest
          r.next, r.share = {high = old.high, low = old.low, time = old.time, weight = old.weight, cap = used}, true
        end
      elseif r.opts.FORCE then
        if asked > 0 and asked > 1e15 - used then go.fail('ERR more than 1000000000000000 units would be in use') end
        if asked > 0 then
          window.append(r, asked)
          v.granted, v.store, used = asked, true, used + asked
        end
      elseif asked > r.limit then
        v.limited = true
      elseif asked > r.limit - used then
        v.limited, lapse = true, window.plus_total(r.newest, asked - r.limit)
      elseif asked > 0 then
        window.append(r, asked)
        v.granted, v.store, used = asked, true, used + asked
        if asked < quantity then lapse = window.plus_total(r.next, 1 - r.limit) end
      end
      if lapse then
        local time = r.next.time
        if r.newest and window.between(r.newest, lapse) >= 0 and r.oldest then
          time = window.lapse(r, lapse)
          if r.share and time == r.newest.time then time = r.next.time end
        end
        v.retry = time + r.us - go.now_us()
      end
      v.remaining = math.max(r.limit - used, 0)
      v.reset = used > 0 and r.next.time + r.us - go.now_us() or 0
      r.v = v
      return v
    end,

    -- drops returns the members that no longer count: at most 128, each checked first.
    drops = function(r, list)
      if not r.newest then return end
      local up_to = go.now_us() - r.us
      if r.newest.cap then up_to = math.max(up_to, r.newest.time - 1) end
      for _, e in ipairs(zset.oldest(r.key, up_to)) do
        window.entry(e)
        local n = window.between(r.newest, e)
        if n <= 0 and e.member ~= r.newest.member then go.fail('ERR the rate limiter at this key is damaged') end
        if not (e.time <= go.now_us() - r.us or r.newest.cap and n >= r.newest.cap) then return end
        if not (r.share and e.member == r.newest.member) then list[#list + 1] = e.member end
      end
    end,

    apply = function(r)
      if not r.v.store then return end
      local length = r.v.forget and go.call(r.key, 'ZCARD')
      if length and length <= 128 then
        local all = zset.oldest(r.key, RANGE)
        for _, e in ipairs(all) do window.entry(e) end
        if #all ~= length then go.fail(window.FOREIGN_WINDOW) end
        go.write({r.key, 'DEL'})
        return
      end
      local next, drops = r.next, {r.key, 'ZREM'}
      local member = '\1' .. (next.high > 0 and window.base36(next.high) .. string.sub('000000000' .. window.base36(next.low), -10) or window.base36(next.low))
      if next.weight ~= 1 or next.cap then member = member .. ':' .. window.base36(next.weight) end
      if next.cap then member = member .. ':' .. window.base36(next.cap) end
      if r.share then drops[3] = r.newest.member end
      window.drops(r, drops)
      local expiry = go.expire(r.key, up(next.time + r.us, 1000), r.us / 4000, not r.newest)
      go.write({r.key, 'ZADD', format('%d', -next.time), member})
      if #drops > 2 then go.write(drops) end
      if expiry then go.write({r.key, 'PEXPIREAT', format('%d', expiry)}) end
    end,
  }
  return window
end

-- QUOTA: a string.

function make.QUOTA()
  quota = {
    words = ' limit period ', arity = 2, options = ' MS UPTO ALIGN FORCE RAISE ', clause_options = ' ALIGN SHARE ', has_units = true,

    parse = function(r)
      r.limit = go.integer(ARGV[r.first], 1, go.MOST, 'limit')
      go.read(r)
      if not r.months or r.wrong and not r.opts.ALIGN then return end
      if not r.opts.ALIGN then go.fail('ERR a period in months needs ALIGN: use ALIGN +00:00 for months of UTC') end
      if r.offset <= -28 * go.DAY or r.offset >= 28 * go.DAY then
        go.fail('ERR offset must be less than 28 days either way if the period is in months')
      end
    end,

    load = function(r)
      r.used, r.ends, r.there = 0.0, 0.0, true
      local text = go.try(r.key, 'GETRANGE', '0', '36')
      if not text then go.wrong_type() end
      if text == '' then
        r.there = go.call(r.key, 'EXISTS') == 1
        if not r.there then return end
      end
      local used, s, us = match(text, '^([1-9]%d*)@(%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d)000$')
      local micros = used and s * 1e6 + us
      if not used or #text > 36 or tonumber(used) > 1e15 or micros < 1 or s + 0 > 9007199254 or s + 0 == 9007199254 and us + 0 > 740992 then
        go.fail('ERR the string at this key is not a quota')
      end
      if micros > go.now_us() then r.used, r.ends = used + 0.0, micros end
    end,

    window_end = function(r)
      local now, us = go.now_us(), r.period * 1000
      if not r.opts.ALIGN then return now + us end
      local offset = r.offset * 1000
      if not r.months then return now - (now - offset) % us + us end
      -- month_day returns the first day of a month. January 1, 1970 is day 0, and its month is 0.
      local function month_day(month)
        local before = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}
        local years, in_year = go.div(month, 12) + 1969, month % 12
        local year, leap_days = years + 1, go.div(years, 4) - go.div(years, 100) + go.div(years, 400)
        if in_year >= 2 and year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) then leap_days = leap_days + 1 end
        return years * 365 + leap_days - 719162 + before[in_year + 1]
      end
      local day = go.div(now - offset, go.DAY * 1000)
      local month = go.div(day * 4800, 146097)
      if month_day(month) > day then month = month - 1 elseif month_day(month + 1) <= day then month = month + 1 end
      return month_day((go.div(month, r.months) + 1) * r.months) * go.DAY * 1000 + offset
    end,

    judge = function(r, quantity)
      local v, used, asked, now = {limited = false, granted = 0, retry = 0, store = false}, r.used, quantity, go.now_us()
      local left = r.limit - used
      r.next_end = r.ends
      if r.opts.RAISE then asked = math.max(quantity - used, 0) end
      if r.opts.UPTO and quantity > 0 then asked = math.min(quantity, math.max(left, 1)) end
      if asked < 0 then
        local given = math.min(-asked, used)
        v.granted, v.store, used = -given, given > 0, used - given
      elseif r.opts.FORCE and asked > 0 and asked > 1e15 - used then
        go.fail('ERR more than 1000000000000000 units would be in use')
      elseif asked > r.limit and not r.opts.FORCE then
        v.limited = true
      elseif asked > left and not r.opts.FORCE then
        v.limited, v.retry = true, r.ends - now
      elseif asked > 0 then
        if used == 0 then r.next_end = quota.window_end(r) end
        v.granted, v.store, used = asked, true, used + asked
        if asked < quantity and not r.opts.RAISE then v.retry = r.next_end - now end
      end
      v.remaining = math.max(r.limit - used, 0)
      v.reset = used > 0 and r.next_end - now or 0
      r.v, r.next_used = v, used
      return v
    end,

    apply = function(r)
      if not r.v.store then return end
      if r.next_used == 0 then
        go.write({r.key, 'DEL'})
        return
      end
      local text = format('%d@%010d%06d000', r.next_used, go.div(r.next_end, 1e6), r.next_end % 1e6)
      local expiry = go.expire(r.key, up(r.next_end, 1000), r.period / 4, not r.there)
      go.write(expiry and {r.key, 'SET', text, 'PXAT', format('%d', expiry)} or {r.key, 'SET', text, 'KEEPTTL'})
    end,
  }
  return quota
end

-- LEASE: a sorted set of slots by holder.

function make.LEASE()
  make_zset()
  lease = {
    words = ' limit ttl id ', arity = 3, options = ' MS ', clause_options = ' SHARE ',

    parse = function(r)
      r.limit = go.integer(ARGV[r.first], 1, go.MOST, 'limit')
      r.ttl = go.time_word(ARGV[r.first + 1], r.unit, 1, 'ttl', 'an integer, or one with a unit such as 250ms, 5s, 15m, 1h or 1d')
      r.id = ARGV[r.first + 2]
      if #r.id > 512 then go.fail('ERR an id must not exceed 512 bytes') end
      go.read_weight(r)
    end,

    check = function(e)
      if not e.time or string.sub(e.member, 1, 1) ~= '\2' or #e.member > 513 then go.fail('ERR the sorted set at this key holds no leases') end
      return e
    end,

    load = function(r)
      local now = go.now_us()
      r.used, r.own, r.latest, r.lapsed = 0, nil, nil, {}
      local newest = zset.newest(r.key, 2)
      r.fresh = not newest
      if not newest then return end
      local member = '\2' .. r.id
      local score = go.call(r.key, 'ZSCORE', member)
      if score then
        local own = lease.check(zset.entries({member, score})[1])
        if own.time > now then r.own = own.time end
      end
      for _, e in ipairs(newest) do -- one of the two newest leases isn't the caller's
        lease.check(e)
        if e.member ~= member then
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
        e = zset.first(r.key, go.now_us())
      else
        local rank = format('%d', r.used - await)
        e = zset.entries(go.call(r.key, 'ZRANGE', rank, rank, 'WITHSCORES'))[1]
      end
      if e and lease.check(e).time > go.now_us() then return e.time end
      return r.latest
    end,

    judge = function(r, quantity)
      local now = go.now_us()
      local v = {limited = false, granted = 1, retry = 0, renewed = r.own and 1 or 0}
      if quantity == 0 then
        v.remaining, v.reset = math.max(r.limit - r.used, 0), math.max(math.max(r.latest or 0, r.own or 0) - now, 0)
      elseif not r.own and r.used >= r.limit then
        v.limited, v.remaining, v.reset = true, 0, r.latest - now
        v.retry = lease.lapse(r, r.used - r.limit + 1) - now
      else
        r.next = now + r.ttl * 1000
        v.remaining = math.max(r.limit - r.used - (r.own and 0 or 1), 0)
        v.reset = math.max(r.latest or 0, r.next) - now
      end
      r.v = v
      return v
    end,

    apply = function(r, denied)
      local drops, member = {r.key, 'ZREM'}, '\2' .. r.id
      for _, e in ipairs(r.lapsed) do
        if denied or e.member ~= member then drops[#drops + 1] = e.member end
      end
      if denied then
        if #drops > 2 then go.write(drops) end
        return
      end
      local expiry = go.expire(r.key, up(math.max(r.latest or 0, r.next), 1000), r.ttl / 4, r.fresh)
      go.write({r.key, 'ZADD', format('%d', -r.next), member})
      if #drops > 2 then go.write(drops) end
      if expiry then go.write({r.key, 'PEXPIREAT', format('%d', expiry)}) end
    end,
  }
  return lease
end

-- release gives slots back.
local function release()
  go.limiter('LEASE')
  local key = KEYS[1]
  if argc > 1025 then go.fail('ERR at most 1024 ids can be released at once') end
  local members, seen = {}, {}
  for i = 2, argc do
    if #ARGV[i] > 512 then go.fail('ERR an id must not exceed 512 bytes') end
    members[i - 1] = '\2' .. ARGV[i]
  end
  local newest = zset.newest(key, 1)
  if not newest then return 0 end
  go.read_clock()
  local scores, going, held, now = go.call(key, 'ZMSCORE', spread(members, 1)), {}, 0, go.now_us()
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
  go.write(drops)
  for _, e in ipairs(zset.newest(key, #going + 1) or {}) do
    if not seen[e.member] then -- the latest that stays
      local last = math.max(lease.check(e).time, now)
      local expiry = go.expire(key, up(last, 1000), (last - now) / 4000)
      if expiry then go.write({key, 'PEXPIREAT', format('%d', expiry)}) end
      break
    end
  end
  return held
end

-- make_shares is for calls with SHARE. A clause with SHARE is a tenant of the clause before it, r.front, which is the shared
-- limit or a tenant too.
local function make_shares()
  function all.misplaced(r)
    if r.kind == 'THROTTLE' then return 'a THROTTLE clause cannot have SHARE: put it into a WINDOW, QUOTA or LEASE clause after this one' end
    if not r.front then return 'SHARE needs a clause before it: put the shared limit first, such as THROTTLE 99 100 1m' end
    return (r.kind == 'LEASE') ~= (r.front.kind == 'LEASE')
      and 'SHARE shares slots or units: the clause before must be a LEASE clause if this one is, and only then'
  end

  -- most returns the most that a clause can ever have left.
  function all.most(r) return r.weight and math.min(r.limit, r.weight * all.most(r.front)) or r.limit end

  -- left returns the units that a clause had left before the call.
  function all.left(r)
    if r.kind == 'THROTTLE' then return r.held > 0 and 0.0 or throttle.left_units(r, r.used, r.used_fraction) end
    return math.max((r.weight and math.min(r.limit, r.weight * all.left(r.front)) or r.limit) - r.used, 0)
  end

  -- remains sets what a tenant has left after the call.
  function all.remains(r, replies, n, granted)
    replies[n][3] = math.max(math.min(r.limit, r.weight * replies[n - 1][3]) - r.used - granted, 0)
  end

  -- share judges by the share of a tenant whose own limit has judged. It reports whether the share denies, but not for ever.
  function all.share(r, replies, n)
    local v, granted, short = r.v, 0, false
    if not v.limited and v.renewed ~= 1 then granted = v.granted end
    if v.renewed ~= 1 and r.quantity >= 0 and not r.opts.FORCE and r.used + r.quantity > r.weight * all.left(r.front) then
      v, granted, short = r.limiter.judge(r, 0, false), 0, not all.never(r)
      v.limited, v.retry = true, 0
      replies[n] = go.verdict(r, v)
    end
    all.remains(r, replies, n, granted)
    return short
  end

  -- last returns when the last units of a tenant lapse.
  function all.last(r)
    if r.kind == 'QUOTA' then return r.ends end
    if r.kind == 'LEASE' then return math.max(r.latest or 0, r.own or 0) end
    return r.newest and r.newest.time + r.us or 0
  end

  -- wait returns how long it takes until units fit the first clause: at its own rate if that is stored.
  function all.wait(r, units)
    if units > r.limit then return math.huge end
    local a, b = throttle.span(r.rate, r.limit - units)
    if r.held == 0 and not throttle.shorter(a, b, r.used, r.used_fraction) then return 0.0 end
    if r.carried and not r.settle then return math.max(throttle.drains_to(r, r.limit - units), r.held) end
    return math.max(throttle.ceil(throttle.minus(r.rate, r.used, r.used_fraction, a, b)), r.held)
  end

  -- later returns the units in use at an instant if no call comes, and when the first of them lapse.
  function all.later(r, at)
    if at >= all.last(r) then return 0.0, 0.0 end
    if r.kind == 'QUOTA' then return r.used, r.ends end
    local first = zset.first(r.key, r.kind == 'LEASE' and at or at - r.us)
    if not first then return 0.0, 0.0 end
    if r.kind == 'WINDOW' then return window.use(r, window.entry(first)), first.time + r.us end
    lease.check(first)
    return at == go.now_us() and r.used or go.call(r.key, 'ZCOUNT', '-inf', '(' .. format('%d', -at)), first.time
  end

  -- fits reports whether a clause will admit units at an instant if no call comes.
  function all.fits(r, units, at)
    while r.kind ~= 'THROTTLE' do
      local used = all.later(r, at)
      if used + units > r.limit then return false end
      units = r.weight and up(used + units, r.weight) or 0
      if units == 0 then return true end
      r = r.front
    end
    return all.wait(r, units) <= (at - go.now_us()) * 1000
  end

  -- narrow bisects a log. It returns bounds within which no units lapse. The clause admits units at the upper one and not at
  -- the lower one, as before.
  function all.narrow(r, units, low, high)
    local at, found = low, math.min(high, all.last(r))
    for _ = 1, 64 do
      if low >= found then return low, high end
      local used, lapse = all.later(r, at)
      if used == 0 or lapse >= high then
        found = at
      elseif all.fits(r, units, lapse) then
        high, found = lapse, at
      else
        low = lapse
      end
      at = low + go.div(found - low, 2)
    end
    go.fail('ERR the rate limiter at this key is damaged')
  end

  -- await returns how long it takes until a tenant's own limit and its share admit its quantity, in units of the reply. Between
  -- two lapses its use stays, so the clause before it must admit so many units: it is asked next.
  function all.await(r)
    local now, unit, low, high, units = go.now_us(), r.opts.MS and 1000 or 1e6, go.now_us(), math.huge, r.quantity
    local wait = math.huge
    while r do
      if r.kind == 'THROTTLE' then
        wait = all.wait(r, units)
        break
      end
      low, high = all.narrow(r, units, low, high)
      local used = all.later(r, low)
      if not r.weight or used + units > r.limit then break end
      units, r = up(used + units, r.weight), r.front
    end
    if wait < (high - now) * 1000 then return up(wait, unit * 1000) end
    if high == math.huge then go.fail('ERR the rate limiter at this key is damaged') end
    return up(high - now, unit)
  end

  -- share_all judges by the shares. If one of them denies units, changed rates of the clauses before it are stored as if
  -- these had denied: usage must drain as the wait says.
  function all.share_all(clauses, replies, may_lock)
    local short, asks = {}, 0
    for n = 1, #clauses do
      local r = clauses[n]
      short[n] = r.weight and all.share(r, replies, n)
      if short[n] and r.quantity > 0 then asks = n end
    end
    for n = 1, asks - 1 do
      local r = clauses[n]
      r.settle = true
      if r.kind == 'THROTTLE' and replies[n][1] ~= 0 then replies[n] = go.verdict(r, throttle.judge(r, r.quantity, may_lock)) end
    end
    for n = 1, #clauses do
      if short[n] then replies[n][4] = all.await(clauses[n]) end
    end
  end
end

-- GO.ALL.

local function make_all()
  all = {
    -- plan finds the clauses in the words. It returns the error of a word, after the clauses before it.
    plan = function(clauses)
      local i, key, bad = 2, 1, nil -- key is an index of KEYS
      local function clause(n, text) return 'ERR clause ' .. n .. ': ' .. text end
      local seen = {[KEYS[1]] = true}
      while true do
        local state, kind = {asked = 0}, nil
        if not go.limiter(string.upper(ARGV[i] or '')) then
          if i > argc then return 'ERR a key needs a clause after it, such as THROTTLE 4 5 1m' end
          return "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not '" .. go.shown(ARGV[i]) .. "'"
        end
        local name = string.upper(ARGV[i])
        local limiter = go.limiter(name)
        while limiter do
          local n, word = #clauses + 1, ARGV[i]
          if n > 32 then return 'ERR at most 32 clauses' end
          if kind and (not limiter.cells or kind ~= name) then
            return clause(n, 'a WINDOW, QUOTA or LEASE clause needs a key of its own: write KEY and another key before it')
          end
          if i + limiter.arity > argc then
            return clause(n, "'" .. go.shown(word) .. "' needs " .. go.in_words(limiter.words, 'and'))
          end
          kind = name
          local r = go.new_request(name, i + 1, KEYS[key], state)
          r.front = clauses[n - 1]
          r.cell, state.asked = state.asked, state.asked + 1
          clauses[n], i = r, i + 1 + limiter.arity
          if limiter.has_units and i <= argc and go.looks_numeric(ARGV[i]) then
            r.quantity_word = i
            i = i + 1
          end
          local o = string.upper(ARGV[i] or '')
          while o == 'SHARE' or o ~= '' and not match(o, ' ') and go.has(limiter.clause_options, o) do
            if o == 'SHARE' and not all.misplaced then make_shares() end
            local wrong = o == 'SHARE' and all.misplaced(r) or r.opts[o] and "option '" .. go.shown(ARGV[i]) .. "' given more than once"
            if go.lacks(o) then
              i = i + 1
              wrong = wrong or i > argc and go.lacks(o)
            end
            if wrong then return clause(n, wrong) end
            if o == 'SHARE' then r.share_word = i elseif go.lacks(o) then r.operand = i end
            r.opts[o], i = true, i + 1
            o = string.upper(ARGV[i] or '')
          end
          name, limiter = o, go.limiter(o)
        end
        if name ~= 'KEY' then break end
        if i + 2 > argc then return 'ERR a key needs a clause after it, such as THROTTLE 4 5 1m' end
        if seen[ARGV[i + 1]] then return 'ERR a key may be named only once' end
        seen[ARGV[i + 1]] = true
        key, i = key + 1, i + 2
        if key > 32 then return 'ERR at most 32 clauses' end
        bad = bad or ARGV[i - 1] ~= KEYS[key]
      end
      local opts, _, wrong, word = go.options(i, ' MS FORCE ')
      if word then
        local o, last, text = go.find_option(ARGV[word]), #clauses, "'" .. go.shown(ARGV[word]) .. "'"
        local numeric = go.looks_numeric(ARGV[word])
        if not next(opts) and (numeric and not clauses[last].limiter.has_units or o and o ~= 'UPTO' and o ~= 'RESERVE' and o ~= 'RAISE') then
          return clause(last, text .. ' is not an option of ' .. clauses[last].kind)
        end
        if o == 'EXACT' or o == 'ALIGN' or o == 'LOCKOUT' or o == 'SHARE' then return 'ERR ' .. text .. ' must come before MS and FORCE' end
        if o then return 'ERR ' .. text .. ' is not an option of GO.ALL' end
        if numeric then return 'ERR ' .. text .. ' is in the wrong place: quantity must come right after the period' end
        if next(opts) then return 'ERR ' .. text .. ' must come before MS and FORCE' end
        return 'ERR ' .. text .. ' is neither a clause nor an option: write KEY before another key'
      end
      for n = 1, #clauses do
        if opts.FORCE and not clauses[n].limiter.has_units then return 'ERR FORCE cannot be combined with a LEASE clause' end
        if opts.FORCE and clauses[n].opts.LOCKOUT then return 'ERR FORCE cannot be combined with LOCKOUT' end
        clauses[n].opts.MS, clauses[n].opts.FORCE = opts.MS, opts.FORCE
      end
      return wrong, bad or key ~= #KEYS
    end,

    -- judge_all judges each clause alone. An error of the contract comes before one of the range.
    judge_all = function(clauses, may_lock)
      local replies, beyond = {}, nil
      for n = 1, #clauses do
        local r = clauses[n]
        r.limiter.load(r)
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
    end,

    never = function(r) return r.quantity > r.limit or r.weight and r.quantity > r.weight * all.most(r.front) end,

    -- fill_gaps stores the absent cells before one that is stored.
    fill_gaps = function(r, clauses, position)
      local cell = r.state.cells[r.cell + 1]
      for i = 0, cell and cell.old and r.cell - 1 or -1 do
        local earlier = r.state.cells[i + 1]
        if not earlier or not earlier.old and not earlier.fields[1] then throttle.store(clauses[position - r.cell + i], r.slack) end
      end
    end,

    run = function()
      local clauses, never = {}, false
      local wrong, misplaced = all.plan(clauses)
      for n = 1, #clauses do
        local r = clauses[n]
        r.opts.MS, r.wrong = r.opts.MS or wrong and (go.says_ms(2) or string.upper(KEYS[1]) == 'MS'), wrong
        r.unit = r.opts.MS and 1 or 1000
        local ok, err = pcall(r.limiter.parse, r)
        if not ok then
          if type(err) == 'table' and err.text then err.text = string.gsub(err.text, '^ERR ', 'ERR clause ' .. n .. ': ') end
          error(err, 0)
        end
        never = never or all.never(r)
      end
      if wrong then go.fail(wrong) end
      if misplaced then go.fail('ERR the keys after KEY must be those of the script, in the same order') end
      go.read_clock()
      local replies = all.judge_all(clauses, not never)
      if all.share_all then all.share_all(clauses, replies, not never) end
      local denied = decide(replies)[1] ~= 0
      for n = 1, #clauses do
        local r, limiter = clauses[n], clauses[n].limiter
        if denied and replies[n][1] == 0 then
          local v = limiter.judge(r, 0, false)
          v.limited, v.retry = false, 0
          replies[n] = go.verdict(r, v)
        end
        if denied and r.weight then all.remains(r, replies, n, 0) end
        limiter.apply(r, denied)
        if r.cell > 0 then all.fill_gaps(r, clauses, n) end
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
  local kind = string.sub(base, 4)
  local least = ({['GO.THROTTLE'] = 5, ['CL.THROTTLE'] = 5, ['GO.WINDOW'] = 4, ['GO.QUOTA'] = 4, ['GO.LEASE'] = 5, ['GO.RELEASE'] = 3,
    ['GO.ALL'] = 5})[base]
  if not least or read_only and (kind == 'RELEASE' or base == 'CL.THROTTLE') then
    if base == 'GO.POLICY' or base == 'GO.INFO' or base == 'GO.TOP' or base == 'GO.HELP' then go.fail('ERR ' .. base .. ' needs the module') end
    go.fail("ERR unknown command '" .. go.shown(name or '') .. "': the script has the commands of gothrottle that decide")
  end
  if #KEYS == 0 then go.fail('ERR the script needs the key in KEYS: write EVALSHA sha 1 key ' .. base .. ' ..') end
  if argc + 1 < least or base == 'CL.THROTTLE' and argc > 5 then
    go.fail("ERR wrong number of arguments for '" .. string.lower(command) .. "' command"
      .. (base == 'CL.THROTTLE' and ': use CL.THROTTLE key max_burst count period [quantity]' or ''))
  end
  if base == 'GO.ALL' then
    make_all()
    return all.run()
  end
  if #KEYS > 1 then go.fail('ERR ' .. base .. ' takes one key') end
  if base == 'GO.RELEASE' then return release() end
  return go.one(kind, base == 'CL.THROTTLE')
end

local ok, reply = pcall(run)
local ok2, err = true, nil
if ok and not read_only then ok2, err = pcall(go.commit) end
if not ok2 then ok, reply = ok2, err end
if ok then return type(reply) == 'table' and integers(reply) or reply end
if type(reply) == 'table' and reply.text then return redis.error_reply(reply.text) end
error(reply, 0)
