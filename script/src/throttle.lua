-- THROTTLE: GCRA at a cell of a hash.

function make.THROTTLE()
  make_rates()
  make_cells()
  local MORE = 1 + 1e-12 -- so much more than another number is more for certain, whatever doubles cut off
  throttle = {
    arity = WORDS.THROTTLE, needs = NEEDS.THROTTLE, has_units = true, has_cells = true,
    options = OPTIONS.GO_THROTTLE, unknown = LIST.GO_THROTTLE, clause_options = OPTIONS.THROTTLE,
    load = cells.load, finish = cells.finish,

    parse = function(r)
      r.limit = word.integer(ARGV[r.first], INTEGER.MaxBurst) + 1
      r.count = word.integer(ARGV[r.first + 1], INTEGER.Count)
      word.read(r)
      -- Doubles cut off less than 0.002 ms.
      if r.limit * r.period / r.count > BOUND.period + 0.002 then go.fail(TEXT.WindowTooLong) end
      if r.redis_cell and r.count > r.period * 1e6 then go.fail(TEXT.RateTooHigh) end
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
      if units * r.period / r.count > BOUND.period * MORE then go.fail(TEXT.DebtTooLong) end
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
