<?php // Predis: 5 requests per user and minute. ADDR=127.0.0.1:6379 php predis.php checks the server, and then
// ADDR=127.0.0.1:6379 php -S 127.0.0.1:8080 predis.php answers GET /?user=bob
require 'Predis/autoload.php'; // Debian's; with Composer: vendor/autoload.php
const FAIL_OPEN = false; // while the server is away: true admits, false refuses

function connect(): Predis\Client {
    [$host, $port] = explode(':', getenv('ADDR'));
    return new Predis\Client(compact('host', 'port') + ['timeout' => 0.5, 'read_write_timeout' => 0.5]); // seconds
}

function call(Predis\Client $redis, ...$words): array {
    $reply = $redis->executeRaw($words, $error); // is sent once, and without the option prefix
    if (!$error) return $reply;
    $fault = preg_match('/^(ERR (?!max)|WRONG|NOAUTH|NOPERM)/', $reply); // of this program. Else it cannot decide now
    throw $fault ? new UnexpectedValueException($reply) : new Predis\Response\ServerException($reply);
}

function takeAndWait(Predis\Client $redis, string $user, int $units, int $tries = 3): array { // -1: admitted, or never
    while (($reply = call($redis, 'GO.THROTTLE', "user:$user", 4, 5, 60, $units))[3] > 0 && --$tries) {
        usleep($reply[3] * random_int(1_000_000, 1_100_000)); // up to a tenth longer, so that not all come at once
    }
    return $reply;
}

if (PHP_SAPI === 'cli') { // a check before the service starts
    if (call(connect(), 'COMMAND', 'INFO', 'GO.THROTTLE')[0]) exit; // the server knows the command
    throw new RuntimeException('the server does not know GO.THROTTLE: load the module gothrottle');
}
try {
    $tries = str_starts_with($_SERVER['REQUEST_URI'], '/wait') ? 3 : 1;
    $reply = takeAndWait(connect(), $_GET['user'], max(1, $_GET['units'] ?? 1), $tries);
    [$limited, $limit, $remaining, $retry, $reset] = $reply; // times are seconds
    http_response_code($limited ? 429 : 200);
    header("RateLimit-Policy: \"user\";q=$limit;w=60");
    header("RateLimit: \"user\";r=$remaining;t=" . ($retry > 0 ? $retry : min($reset, 12)));
    if ($retry > 0) header("Retry-After: $retry");
} catch (Predis\PredisException $away) {
    error_log($away->getMessage());
    http_response_code(FAIL_OPEN ? 200 : 503);
} // other errors, as of a key of the wrong type, end in the status 500
