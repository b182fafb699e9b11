-- Sliding window by two counters, as Upstash's: the last window counts by the part of it that a period ago still covers. KEYS:
-- the counters of this window and of the last one. ARGV: limit, period in ms, the time in µs, quantity.
local limit, period, now, quantity = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]) / 1000, tonumber(ARGV[4])
local counts = redis.call('MGET', KEYS[1], KEYS[2])
local covered = 1 - now % period / period
local used = tonumber(counts[1] or 0) + math.floor(covered * tonumber(counts[2] or 0))
if used >= limit then return {1, limit, 0} end
local after = redis.call('INCRBY', KEYS[1], quantity)
if after == quantity then redis.call('PEXPIRE', KEYS[1], string.format('%d', period * 2 + 1000)) end
return {0, limit, limit - used - quantity}
