/* hiredis: 5 units per user and minute. cc hiredis.c -lhiredis -o limit && ADDR=127.0.0.1:6379 ./limit bob [units]
 * Prints "admitted" or "denied retry_after" and exits with 0 or 1; with 2 if there is no decision. WAIT=1 waits. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int fail_open = 0; /* while the server is away: 1 admits, 0 isn't a decision */

static int stop(const char *text) { return fprintf(stderr, "%s\n", text), 2; }

static int away(redisContext *c) { return fail_open ? puts("admitted"), 0 : stop(c ? c->errstr : "no memory"); }

int main(int argc, char **argv) {
    char *host = getenv("ADDR"), *port = host ? strrchr(host, ':') : NULL;
    if (argc < 2 || !port) return stop("usage: ADDR=host:port limit user [units]");
    *port++ = 0;
    struct timeval limit = {.tv_usec = 500000};
    redisContext *c = redisConnectWithTimeout(host, atoi(port), limit);
    if (!c || c->err || redisSetTimeout(c, limit)) return away(c); /* by default there are no limits */
    redisReply *info = redisCommand(c, "COMMAND INFO GO.THROTTLE");
    if (!info) return away(c);
    int known = info->elements && info->element[0]->type == REDIS_REPLY_ARRAY;
    if (!known) return stop("the server does not know GO.THROTTLE: load the module gothrottle");
    freeReplyObject(info);
    srand48(getpid());
    for (int tries = getenv("WAIT") ? 3 : 1;;) {
        const char *units = argc > 2 ? argv[2] : "1"; /* words of users stand in %s or %b, never in the format */
        redisReply *reply = redisCommand(c, "GO.THROTTLE user:%s 4 5 1m %s", argv[1], units); /* is sent once */
        if (!reply) return away(c);
        if (reply->type != REDIS_REPLY_ARRAY) return stop(reply->str);
        long long limited = reply->element[0]->integer, retry_after = reply->element[3]->integer;
        freeReplyObject(reply);
        if (!limited) return puts("admitted"), 0;
        if (retry_after < 0 || !--tries) return printf("denied %lld\n", retry_after), 1; /* -1: it never will be */
        usleep(retry_after * 1e6 * (1 + drand48() / 10)); /* up to a tenth longer, so that not all come at once */
    }
}
