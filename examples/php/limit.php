<?php // The service of phpredis.php and predis.php: 5 requests per user and minute, GET /?user=bob, and GET /wait for jobs.
// ADDR=127.0.0.1:6379 php phpredis.php checks the server, and then ADDR=127.0.0.1:6379 php -S 127.0.0.1:8080 phpredis.php

// Logs once, and not for each request; null: the server decided. PHP forgets all between requests, so a file remembers.
function away(?Throwable $error): void {
    $file = sys_get_temp_dir() . '/gothrottle-away-' . getenv('PORT');
    if (PHP_SAPI === 'cli') @unlink($file);
    if ($error && @fopen($file, 'x')) error_log('no decision: ' . $error->getMessage());
    if (!$error && is_file($file) && @unlink($file)) error_log('the server decides again');
}

/** The text of gothrottle.lua, if SCRIPT names the file, or is 1 in the repository: for a server without the module. */
function script(): string {
    $file = getenv('SCRIPT') === '1' ? __DIR__ . '/../../script/gothrottle.lua' : getenv('SCRIPT');
    return $file ? file_get_contents($file) : '';
}

function takeAndWait(callable $take, string $user, int $units, int $tries): array { // -1: admitted, or never will be
    while (($reply = $take($user, $units))[3] > 0 && --$tries) {
        usleep($reply[3] * random_int(1_000_000, 1_100_000)); // up to a tenth longer, so that not all come together
    }
    return $reply;
}

/** $known() says whether the server has the module. They throw a $class if the server cannot decide now. */
function serve(callable $known, callable $take, string $class, bool $failOpen): void {
    try {
        if (PHP_SAPI === 'cli') { // a check before the service starts
            if ($known()) exit;
            throw new LogicException('the server does not know GO.THROTTLE: load the module gothrottle');
        }
        if (!is_string($user = $_GET['user'] ?? null)) {
            http_response_code(400);
            exit("?user= is missing\n");
        }
        $tries = str_starts_with($_SERVER['REQUEST_URI'], '/wait') ? 3 : 1;
        $reply = takeAndWait($take, $user, max(1, (int) ($_GET['units'] ?? 1)), $tries);
        [$limited, $limit, $remaining, $retry, $reset] = $reply; // times are seconds
        away(null);
        http_response_code($limited ? 429 : 200);
        header("RateLimit-Policy: \"user\";q=$limit;w=60");
        header("RateLimit: \"user\";r=$remaining;t=" . ($retry > 0 ? $retry : min($reset, 12)));
        if ($retry > 0) header("Retry-After: $retry");
    } catch (Exception $error) {
        if (!$error instanceof $class) throw $error; // as of a key of the wrong type: the status is 500
        away($error); // a service whose server is unavailable starts, and each request tries again
        http_response_code($failOpen ? 200 : 503);
    }
}
