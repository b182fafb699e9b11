<?php // Predis: 5 requests per user and minute. ADDR=127.0.0.1:6379 php predis.php checks the server, and then
// ADDR=127.0.0.1:6379 php -S 127.0.0.1:8080 predis.php answers GET /?user=bob
require 'Predis/Autoloader.php'; // Debian's; with Composer: vendor/autoload.php
Predis\Autoloader::register();
const FAIL_OPEN = false; // while the server is away: true admits, false refuses

function connect(): Predis\Client {
    [$host, $port] = explode(':', getenv('ADDR'));
    return new Predis\Client(compact('host', 'port') + ['timeout' => 0.5, 'read_write_timeout' => 0.5]); // seconds
}

function call(Predis\Client $redis, ...$words): array {
    $reply = $redis->executeRaw($words, $error); // is sent once, and without the option prefix
    return $error ? throw new UnexpectedValueException($reply) : $reply;
}

function takeAndWait(Predis\Client $redis, string $user, int $units, int $tries = 3): array { // -1: admitted, or never
    while (($reply = call($redis, 'GO.THROTTLE', "user:$user", 4, 5, 60, $units))[3] > 0 && --$tries) {
        usleep((int) ($reply[3] * 1e6 * (1 + lcg_value() / 10))); // up to a tenth longer, so that not all come at once
    }
    return $reply;
}

if (PHP_SAPI === 'cli') { // a check before the service starts
    $missing = empty(call(connect(), 'COMMAND', 'INFO', 'GO.THROTTLE')[0]);
    if ($missing) fwrite(STDERR, "the server does not know GO.THROTTLE: load the module gothrottle\n");
    exit((int) $missing);
}
try {
    $tries = str_starts_with($_SERVER['REQUEST_URI'], '/wait') ? 3 : 1;
    $reply = takeAndWait(connect(), $_GET['user'], (int) ($_GET['units'] ?? 1), $tries);
    [$limited, $limit, $remaining, $retry, $reset] = $reply; // times are seconds
    http_response_code($limited ? 429 : 200);
    header("RateLimit-Policy: \"user\";q=$limit;w=60");
    header("RateLimit: \"user\";r=$remaining;t=" . ($retry > 0 ? $retry : min($reset, 12)));
    if ($retry > 0) header("Retry-After: $retry");
} catch (Predis\PredisException) { // the server is away: its error replies are no exceptions here
    http_response_code(FAIL_OPEN ? 200 : 503);
} // other errors, as of a key of the wrong type, end in the status 500
