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
    arity = WORDS.QUOTA, needs = NEEDS.QUOTA, has_units = true,
    options = OPTIONS.GO_QUOTA, unknown = LIST.GO_QUOTA, clause_options = OPTIONS.QUOTA,

    parse = function(r)
      r.limit = word.integer(ARGV[r.first], INTEGER.Limit)
      word.read(r)
      if not r.months or r.wrong and not r.opts.ALIGN then return end
      if not r.opts.ALIGN then go.fail(TEXT.MonthsWithoutAlign) end
      if r.offset <= -28 * DAY or r.offset >= 31 * DAY then go.fail(TEXT.MonthsOffsetRange) end
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
      if not used or #text > 36 or tonumber(used) > BOUND.in_use or micros < 1 or s .. us > '9007199254740992' then
        go.fail(TEXT.ForeignString)
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
