-- Token bucket. KEYS[1]: a hash of tokens and the time of the last call. ARGV: capacity, tokens per s, quantity.
local capacity, rate, quantity = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(state[1] or capacity)
local at = tonumber(state[2] or now)
tokens = math.min(capacity, tokens + math.max(0, now - at) / 1000000 * rate)
if tokens < quantity then
  return {1, capacity, math.floor(tokens), math.ceil((quantity - tokens) / rate), math.ceil((capacity - tokens) / rate)}
end
tokens = tokens - quantity
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens), 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - tokens) / rate * 1000))
return {0, capacity, math.floor(tokens), -1, math.ceil((capacity - tokens) / rate)}
