<?php // Predis: see limit.php. Requests are refused while the server is unavailable (fail closed).
require 'Predis/autoload.php'; // Debian's; with Composer: vendor/autoload.php
require 'limit.php';

function connect(): Predis\Client {
    [$host, $port] = explode(':', getenv('ADDR'));
    return new Predis\Client(compact('host', 'port') + ['timeout' => 0.5, 'read_write_timeout' => 0.5]); // seconds
}

function call(...$words): array {
    $reply = connect()->executeRaw($words, $error); // is sent once, and without the option prefix
    if (!$error) return $reply;
    $fault = preg_match('/^(ERR (?!max number)|WRONG|NOAUTH|NOPERM)/', $reply); // of this program. Else: no decision
    throw $fault ? new UnexpectedValueException($reply) : new Predis\Response\ServerException($reply);
}

function take(string $user, int $units): array {
    [$text, $words] = [script(), ['GO.THROTTLE', 4, 5, 60, $units]];
    if (!$text) return call('GO.THROTTLE', "user:$user", 4, 5, 60, $units);
    try {
        return call('EVALSHA', sha1($text), 1, "user:$user", ...$words);
    } catch (Predis\Response\ServerException $error) {
        if (!str_starts_with($error->getMessage(), 'NOSCRIPT')) throw $error;
        return call('EVAL', $text, 1, "user:$user", ...$words);
    }
}

$known = fn() => script() || call('COMMAND', 'INFO', 'GO.THROTTLE')[0];
serve($known, 'take', Predis\PredisException::class, false); // true: fail open
