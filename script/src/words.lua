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
    if n and (n < least or n * ms > BOUND.period) then go.fail(outside) end
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
      if not match(text, '^[-+]?%d+$') then go.fail(TEXT.PeriodNotInteger) end
      local n = tonumber(text) * 1000.0
      if n < 1 or n > BOUND.period then go.fail(TEXT.SecondsRange) end
      return n
    end
    local months = match(text, '^([-+]?%d+)mo$')
    if not months then
      return word.time(text, r.unit, 1,
        TEXT.PeriodNotTime,
        TEXT.PeriodRange)
    end
    if r.kind ~= 'QUOTA' then go.fail(TEXT.MonthsNotQuota) end
    r.months = tonumber(months) + 0.0
    if r.months < 1 or r.months > BOUND.months then go.fail(TEXT.MonthsRange) end
    return r.months * 28 * 86400000
  end,

  -- read reads the period, the quantity and the words after options of a request: those that come first are judged first.
  read = function(r)
    local opts, text = r.opts, r.operand and ARGV[r.operand]
    r.period = word.period(r, ARGV[r.first + r.limiter.arity - 1])
    if r.quantity_word then r.quantity = word.integer(ARGV[r.quantity_word], INTEGER.Quantity) end
    if opts.RAISE and r.quantity < 0 then go.fail(TEXT.PolicyQuantityRange) end
    if r.share_word and r.share_word < (r.operand or 0) then word.read_weight(r) end
    if text and opts.ALIGN then
      local sign, hours, minutes = match(text, '^([-+])(%d%d):(%d%d)$')
      local n, ms = word.split_time(text, r.unit)
      if sign and tonumber(hours) <= 23 and tonumber(minutes) <= 59 then
        n, ms = (hours * 60 + minutes) * (sign == '+' and -1.0 or 1.0), 60000
      end
      if not n then go.fail(TEXT.OffsetNotTime) end
      r.offset = n * ms
      if math.abs(r.offset) > BOUND.period then go.fail(TEXT.OffsetRange) end
    elseif text and opts.RESERVE then
      r.max_wait = word.time(text, r.unit, 0,
        TEXT.MaxWaitNotTime,
        TEXT.MaxWaitRange)
    elseif text and opts.LOCKOUT then
      r.lockout = word.time(text, r.unit, 1,
        TEXT.LockoutNotTime,
        TEXT.LockoutRange)
    end
    word.read_weight(r)
  end,

  read_weight = function(r)
    if r.share_word then r.weight = word.integer(ARGV[r.share_word], INTEGER.Weight) end
  end,

  -- lacks returns the error of an option without the word after it; nil if none belongs there.
  lacks = function(option)
    if option == 'ALIGN' then return TEXT.AlignWithoutOffset end
    if option == 'RESERVE' then return TEXT.ReserveWithoutMaxWait end
    if option == 'LOCKOUT' then return TEXT.LockoutWithoutTime end
    if option == 'SHARE' then return TEXT.ShareWithoutWeight end
  end,

  find_option = function(text)
    text = string.upper(text)
    return not match(text, ' ') and word.has(OPTIONS.all, text) and text
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
      local excludes, lacks = word.has(OPTIONS.exclusive, o), word.lacks(o)
      wrong = wrong or r.opts[o] and word.named(TEXT.RepeatedOption, ARGV[i])
        or excludes and mode and word.named(TEXT.With, ARGV[i], mode)
      if lacks then i = i + 1 end
      wrong = wrong or i > argc and lacks
      if wrong then return i, wrong end
      if o == 'SHARE' then r.share_word = i elseif lacks then r.operand = i end
      r.opts[o], mode, i = true, mode or excludes and o, i + 1
    end
    return i
  end,
}
