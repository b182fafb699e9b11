-- GO.ALL.

local function make_all()
  local function clause(n, err) return (string.gsub(err, '^ERR ', 'ERR clause ' .. n .. ': ')) end

  -- wrong_word returns the error of a word after all clauses and some options.
  local function wrong_word(text, last, r, after_options)
    local o, numeric, err = word.find_option(text), word.looks_numeric(text), TEXT.BareKey
    if not after_options and (numeric and not r.limiter.has_units or o and o ~= 'UPTO' and o ~= 'RESERVE' and o ~= 'RAISE') then
      return word.named(clause(last, TEXT.NotOptionOfClause), text, r.kind)
    end
    if o == 'EXACT' or o == 'ALIGN' or o == 'LOCKOUT' or o == 'SHARE' then
      err = TEXT.AfterOptions
    elseif o then
      err = TEXT.NotOptionOfAll
    elseif numeric then
      err = TEXT.QuantityLate
    elseif after_options then
      err = TEXT.AfterOptions
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
      if i > argc then return TEXT.KeyWithoutClause end
      if not limiter then return word.named(TEXT.UnknownClause, ARGV[i]) end
      while limiter do
        local n = #clauses + 1
        if n > BOUND.clauses then return TEXT.TooManyClauses end
        if kind and (not limiter.has_cells or kind ~= name) then return clause(n, TEXT.KeyShared) end
        if i + limiter.arity > argc then return clause(n, word.named(TEXT.ClauseShort, ARGV[i], limiter.needs)) end
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
      if i + 2 > argc then return TEXT.KeyWithoutClause end
      if seen[ARGV[i + 1]] then return TEXT.KeyRepeated end
      key, i = key + 1, i + 2
      if key > BOUND.clauses then return TEXT.TooManyClauses end
      seen[ARGV[i - 1]], other = true, other or ARGV[i - 1] ~= KEYS[key]
    end
    local opts, wrong = {}, nil
    i, wrong = word.options({opts = opts}, i, OPTIONS.GO_ALL)
    if i <= argc and not wrong then return wrong_word(ARGV[i], #clauses, clauses[#clauses], next(opts)) end
    for n = 1, #clauses do
      local r = clauses[n]
      if opts.FORCE and r.kind == 'LEASE' then return TEXT.ForceLease end
      if opts.FORCE and r.opts.LOCKOUT then return TEXT.ForceLockout end
      r.opts.MS, r.opts.FORCE = opts.MS, opts.FORCE
    end
    return wrong, other or key ~= #KEYS
  end

  -- unfit_share returns the error of the numbers of a LEASE clause that shares units.
  local function unfit_share(r)
    if r.weight ~= 1 then return TEXT.ShareWeight end
    for _, f in ipairs(r.fronts) do
      if f.quantity ~= 0 then return TEXT.SharePeeks end
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
      if r.kind == 'THROTTLE' then return TEXT.ShareCells end
      local clauses, first, units = all_of.clauses, r.place - 1, r.limiter.has_units
      local f = clauses[first]
      if not f then return TEXT.ShareFirst end
      if f.limiter.frees or units and not f.limiter.has_units then return TEXT.ShareSlots end
      r.links, r.fronts = (f.links or 0) + 1, {f}
      if not units and f.limiter.has_units then r.holds = true end
      while r.holds and first > 1 and clauses[first - 1].limiter.has_units do
        first = first - 1
        r.fronts[#r.fronts + 1] = clauses[first]
      end
      return r.links > BOUND.shares and TEXT.ShareChain
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
