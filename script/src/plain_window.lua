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
