-- Fixed window. KEYS[1]: the counter. ARGV: period in ms. The caller compares the reply with the limit.
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return used
