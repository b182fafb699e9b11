-- gothrottle without the module: rate limits by one script, for servers that load no modules. docs/managed.md has more.
--
--   EVAL "$(cat gothrottle.lua)" 1 user:42 GO.THROTTLE 15 30 1m     the keys, then the command's words without its first key
--
-- It reads the server's clock and the keys in KEYS, and writes these keys only: each is a hash, a string or a sorted set, and
-- expires when nothing is in use any more. It calls TIME, and for a key EXISTS PEXPIRETIME HLEN HMGET GETRANGE ZRANGE ZCARD
-- ZREVRANGEBYSCORE ZSCORE ZMSCORE ZCOUNT; it writes by HSET HDEL SET ZADD ZREM DEL PEXPIREAT. It promises the module's replies
-- and errors, and an end: after 30,000 instructions at most, and as many for each SHARE, 10,000 for each clause that a hold shares,
-- and 150 for each of at most 1,024 lapsed leases. Everything is read and judged, and the user's permissions are asked for,
-- before the first write, so a call that fails has written nothing.
-- SHA256SUMS of each release has this file's sum; sha1sum prints the name by which EVALSHA knows it. Don't change this file:
-- go generate ./script makes it of script/src.

-- Numbers are doubles: each is whole and at most 2^53, or the call is an error. An instant is two numbers: seconds since the
-- Unix epoch, and ns. A length of time is ns and a fraction in 1/count ns.

local argc, name, format, match, whole = #ARGV, ARGV[1], string.format, string.match, math.tointeger
local RANGE = 9007199254740992 -- 2^53
local now_s, now_ns -- set by what reads the clock first; it is read once
local writes, late -- lists of the key, the command and its words; as in the module, keys that are made come late
