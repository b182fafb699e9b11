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
