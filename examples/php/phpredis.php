<?php // phpredis: see limit.php. Requests go on while the server is unavailable (fail open).
require 'limit.php';

function connect(): Redis {
    [$host, $port] = explode(':', getenv('ADDR'));
    $redis = new Redis();
    $redis->connect($host, (int) $port, 0.5, null, 0, 0.5); // seconds to connect, and to wait for a reply
    return $redis;
}

function take(string $user, int $units): array { // limited, limit, remaining, retry_after, reset_after
    [$redis, $text, $words] = [connect(), script(), ["user:$user", 'GO.THROTTLE', 4, 5, 60, $units]];
    if ($text) {
        $reply = $redis->evalSha(sha1($text), $words, 1);
        if (!$reply && str_starts_with($redis->getLastError(), 'NOSCRIPT')) $reply = $redis->eval($text, $words, 1);
    } else {
        $reply = $redis->rawCommand('GO.THROTTLE', $redis->_prefix("user:$user"), 4, 5, 60, $units);
    }
    if ($reply) return $reply;
    $error = $redis->getLastError(); // a server that is full, or a replica, is a RedisException; others are not
    throw str_contains($error, 'max number') ? new RedisException($error) : new UnexpectedValueException($error);
}

$known = fn() => script() || connect()->rawCommand('COMMAND', 'INFO', 'GO.THROTTLE')[0];
serve($known, 'take', RedisException::class, true); // false: fail closed
