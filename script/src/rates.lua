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
