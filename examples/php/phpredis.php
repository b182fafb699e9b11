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
    return $reply ?: throw new UnexpectedValueException($redis->getLastError()); // an error reply is no exception
}

function takeAndWait(Redis $redis, string $user, int $units, int $tries = 3): array { // -1: admitted, or never will be
    while (($reply = take($redis, $user, $units))[3] > 0 && --$tries) {
        usleep((int) ($reply[3] * 1e6 * (1 + lcg_value() / 10))); // up to a tenth longer, so that not all come at once
    }
    return $reply;
}

if (PHP_SAPI === 'cli') { // a check before the service starts
    $missing = empty(connect()->rawCommand('COMMAND', 'INFO', 'GO.THROTTLE')[0]);
    if ($missing) fwrite(STDERR, "the server does not know GO.THROTTLE: load the module gothrottle\n");
    exit((int) $missing);
}
try {
    $ask = str_starts_with($_SERVER['REQUEST_URI'], '/wait') ? 'takeAndWait' : 'take';
    [$limited, $limit, $remaining, $retry, $reset] = $ask(connect(), $_GET['user'], (int) ($_GET['units'] ?? 1));
    http_response_code($limited ? 429 : 200);
    header("RateLimit-Policy: \"user\";q=$limit;w=60");
    header("RateLimit: \"user\";r=$remaining;t=" . ($retry > 0 ? $retry : min($reset, 12)));
    if ($retry > 0) header("Retry-After: $retry");
} catch (RedisException) {
    http_response_code(FAIL_OPEN ? 200 : 503);
} // other errors, as of a key of the wrong type, end in the status 500
