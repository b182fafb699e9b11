<?php // phpredis: 5 requests per user and minute. ADDR=127.0.0.1:6379 php phpredis.php checks the server, and then
// ADDR=127.0.0.1:6379 php -S 127.0.0.1:8080 phpredis.php answers GET /?user=bob
const FAIL_OPEN = true; // while the server is away: true admits, false refuses

function connect(): Redis {
    [$host, $port] = explode(':', getenv('ADDR'));
    $redis = new Redis();
    $redis->connect($host, (int) $port, 0.5, null, 0, 0.5); // seconds to connect, and to wait for a reply
    return $redis;
}

function take(Redis $redis, string $user, int $units): array { // limited, limit, remaining, retry_after, reset_after
    $reply = $redis->rawCommand('GO.THROTTLE', $redis->_prefix("user:$user"), 4, 5, 60, $units);
    if ($reply) return $reply;
    $error = $redis->getLastError(); // a server that is full, or a replica, is a RedisException; others are not
    throw str_contains($error, 'max number') ? new RedisException($error) : new UnexpectedValueException($error);
}

function takeAndWait(Redis $redis, string $user, int $units, int $tries = 3): array { // -1: admitted, or never will be
    while (($reply = take($redis, $user, $units))[3] > 0 && --$tries) {
        usleep($reply[3] * random_int(1_000_000, 1_100_000)); // up to a tenth longer, so that not all come at once
    }
    return $reply;
}

if (PHP_SAPI === 'cli') { // a check before the service starts
    if (connect()->rawCommand('COMMAND', 'INFO', 'GO.THROTTLE')[0]) exit; // the server knows the command
    throw new RuntimeException('the server does not know GO.THROTTLE: load the module gothrottle');
}
try {
    $ask = str_starts_with($_SERVER['REQUEST_URI'], '/wait') ? 'takeAndWait' : 'take';
    [$limited, $limit, $remaining, $retry, $reset] = $ask(connect(), $_GET['user'], max(1, $_GET['units'] ?? 1));
    http_response_code($limited ? 429 : 200);
    header("RateLimit-Policy: \"user\";q=$limit;w=60");
    header("RateLimit: \"user\";r=$remaining;t=" . ($retry > 0 ? $retry : min($reset, 12)));
    if ($retry > 0) header("Retry-After: $retry");
} catch (RedisException $away) {
    error_log($away->getMessage());
    http_response_code(FAIL_OPEN ? 200 : 503);
} // other errors, as of a key of the wrong type, end in the status 500
