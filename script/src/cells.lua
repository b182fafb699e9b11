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
          go.fail(f[1] and f[2] and not (is_integer(f[1]) and is_integer(f[2])) and TEXT.Damaged or TEXT.ForeignHash)
        else
          counted, after_gap, state.cells[i + 1] = counted + n, after_gap or gap, decode(f) or go.fail(TEXT.Damaged)
        end
      end
      if counted ~= length or after_gap then go.fail(TEXT.ForeignHash) end
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
        if not match(text, '^[1-9]%d*$') or #text ~= 19 or text > LAST then go.fail(TEXT.WrongType) end
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
