-- Sliding window log. KEYS[1]: a sorted set, one entry per admitted call. ARGV: limit, period in ms, a unique id.
local limit, period = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - period * 1000))
local used = redis.call('ZCARD', KEYS[1])
if used >= limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {1, limit, 0, math.ceil((tonumber(oldest[2]) + period * 1000 - now) / 1000), period}
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[3])
redis.call('PEXPIRE', KEYS[1], period)
return {0, limit, limit - used - 1, -1, period}
