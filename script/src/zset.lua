-- Sorted sets: windows and leases. A score is a time in µs with its sign turned, so the newest entry is the first.

local function make_zset()
  zset = zset or {
    -- entries returns {member, time} for each pair of a reply. The time is nil if the score isn't one.
    entries = function(reply)
      local list = {}
      for i = 1, #reply, 2 do
        local time = -(tonumber(reply[i + 1]) or 1)
        list[#list + 1] = {member = reply[i], time = time >= 0 and time <= RANGE and time % 1 == 0 and time + 0.0 or nil}
      end
      return list
    end,

    -- newest returns up to most entries; nil if there are none.
    newest = function(key, most)
      local reply = go.call(key, 'ZRANGE', '0', format('%d', most - 1), 'WITHSCORES')
      return #reply > 0 and zset.entries(reply) or nil
    end,

    -- first returns the oldest entry after a time.
    first = function(key, after)
      return zset.entries(go.call(key, 'ZREVRANGEBYSCORE', '(' .. format('%d', -after), '-inf', 'WITHSCORES', 'LIMIT', '0', '1'))[1]
    end,

    -- oldest returns up to most entries from a score up to a time, the oldest first.
    oldest = function(key, score, up_to, most)
      return zset.entries(go.call(key, 'ZREVRANGEBYSCORE', score, format('%d', -up_to), 'WITHSCORES', 'LIMIT', '0', format('%d', most)))
    end,
  }
end
