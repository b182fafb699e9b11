-- What follows is for calls that aren't answered yet.

-- spread returns the words of a list from i on.
local function spread(list, i)
  local rest = #list - i
  if rest == 1 then return list[i], list[i + 1] end
  if rest > 4 then return list[i], list[i + 1], list[i + 2], list[i + 3], list[i + 4], spread(list, i + 5) end
  if rest > 0 then return list[i], spread(list, i + 1) end
  if rest == 0 then return list[i] end
end

-- commit makes sure that the user may run all writes, then runs them. It returns the text of an error. The server may refuse
-- the first write, because then nothing has been written.
local function commit()
  for i = 1, late and #late or 0 do writes[#writes + 1] = late[i] end
  for i = 2, writes and redis.acl_check_cmd and #writes or 0 do
    local w = writes[i]
    if not redis.acl_check_cmd(w[2], w[1], spread(w, 3)) then
      return "NOPERM this user has no permissions to run the '" .. string.lower(w[2]) .. "' command"
    end
  end
  for i = 1, writes and #writes or 0 do
    local w = writes[i]
    KEYS[1] = w[1] -- some proxies want a literal index in each call
    local done = redis.pcall(w[2], KEYS[1], spread(w, 3))
    if type(done) == 'table' and done.err then return done.err end
  end
end

-- decide returns the reply of GO.ALL. A clause that frees slots decides only if it is limited, or if all do.
local function decide(replies)
  local found, longest, least = 1, -1, math.huge
  for i = 1, #replies do
    local r = replies[i]
    local wait = r[4] < 0 and math.huge or r[4]
    if r[1] ~= 0 and wait > longest then
      found, longest = i, wait
    elseif longest < 0 and r[3] < least and not r.frees then
      found, least = i, r[3]
    end
  end
  local r = replies[found]
  return {r[1], r[2], r[3], r[4], r[5], found - 1, spread(replies, 1)}
end

-- answer returns the reply after the writes, or an error. In scripts servers don't begin a refusal by its code.
local function answer(reply, err)
  err = err or commit()
  if err then
    err = string.gsub(err, '^ERR (The user executing)', 'NOPERM %1')
    return redis.error_reply((string.gsub(err, '^ERR (ACL failure)', 'NOPERM %1')))
  end
  if not whole or type(reply) ~= 'table' then return reply end
  for i = 1, #reply do -- later versions of Lua would send doubles as such
    for j = 1, type(reply[i]) == 'table' and #reply[i] or 0 do reply[i][j] = whole(reply[i][j]) end
    if type(reply[i]) == 'number' then reply[i] = whole(reply[i]) end
  end
  return reply
end

if reply then return answer(parts and decide(parts) or reply) end
