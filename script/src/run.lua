-- The commands.

local read_only = string.upper(string.sub(name or '', -3)) == '_RO'
local function run()
  local command = string.upper(name or '')
  local base = read_only and string.sub(command, 1, -4) or command
  local least = ({COMMANDS.least})[base]
  local is_all, is_release, redis_cell = base == 'GO.ALL', base == 'GO.RELEASE', base == 'CL.THROTTLE'
  if not least or read_only and (is_release or redis_cell) then
    if word.has(' GO.POLICY GO.INFO GO.TOP GO.HELP ', base) then go.fail('ERR ' .. base .. ' needs the module') end
    go.fail(word.named("ERR unknown command '<word>': the script has the commands of gothrottle that decide", name or ''))
  end
  if #KEYS == 0 then go.fail('ERR the script needs the key in KEYS: write EVALSHA sha 1 key ' .. base .. ' ..') end
  if argc + 1 < least or redis_cell and argc > 5 then
    local syntax = redis_cell and ': use SYNTAX.CL_THROTTLE' or ''
    go.fail("ERR wrong number of arguments for '" .. string.lower(command) .. "' command" .. syntax)
  end
  if #KEYS > 1 and not is_all then go.fail('ERR ' .. base .. ' takes one key') end
  if is_release then return release() end
  if not is_all then return go.one(string.sub(base, 4), redis_cell) end
  make_all()
  return all_of.run()
end

local ok, result = pcall(run)
if not ok and type(result) == 'table' and result.text then return answer(nil, result.text) end
if not ok then error(result, 0) end
if read_only then writes, late = {}, {} end
return answer(result)
