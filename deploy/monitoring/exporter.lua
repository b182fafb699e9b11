#!lua flags=no-writes,allow-stale
-- For redis_exporter's --script: what INFO gothrottle shows, as one flat list of names and numbers. prometheus.yml, beside
-- this file, turns the names into metrics with labels.
--
-- One scrape costs one INFO of 80 to 90 lines, and four for each policy. If keys are counted and the user may call
-- GO.TOP, one GO.TOP 10 comes on top. The script writes nothing and names no keys, so it runs on replicas and in EVAL_RO.

local reply = {}

local function add(name, value)
  reply[#reply + 1] = name
  reply[#reply + 1] = tostring(value) -- the exporter reads strings only
end

-- A label must be UTF-8, and a key's name need not be: other bytes than printable ASCII become \xNN.
local function printable(name)
  return (name:gsub('[%c\\\127-\255]', function(c) return string.format('\\x%02x', c:byte()) end))
end

local info = redis.call('INFO', 'gothrottle')
local loaded, top_keys = 0, 0
for name, value in info:gmatch('([%w_.-]+):(%d+)\r\n') do
  if name == 'gothrottle_panics' then loaded = 1 end
  if name == 'gothrottle_top_keys' then top_keys = tonumber(value) end
  add(name, value)
end
add('gothrottle_loaded', loaded)

-- GO.TOP is an error while no keys are counted, and for a user without the permission.
if top_keys > 0 and redis.acl_check_cmd('GO.TOP', '10') then
  local top = redis.pcall('GO.TOP', '10')
  local seen = {} -- GO.TOP cuts names, so two rows may have the same one
  for _, row in ipairs(top.err and {} or top) do
    local name = printable(row[1])
    if not seen[name] then
      seen[name] = true
      add('gothrottle_top_denied:' .. name, row[2])
      add('gothrottle_top_error:' .. name, row[3])
    end
  end
end

return reply
