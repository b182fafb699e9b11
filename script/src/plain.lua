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
