/* A module to compare with: a rate limiter written in C in the plainest way.
 *
 * PLAIN.THROTTLE key max_burst count period [quantity] replies with the five integers of
 * redis-cell. It keeps the TAT and the interval in two fields of a hash. Every admitted
 * call sets an absolute expiry and replicates two commands. The interval is rounded down
 * to whole ns.
 *
 * PLAIN.LEAST key steps count period does the least that a limiter in any module must do.
 * It decides nothing. See least(). */
#include "../../cgo/api.h"

#include <time.h>

enum { HASH_PLAIN = 0 };

static const int64_t NS = 1000000000;
static const int64_t MAX_NS = 3153600000 * NS; /* 100 years */

static RedisModuleString *field_tat, *field_interval;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

static long long ceil_seconds(int64_t ns) {
    return ns <= 0 ? 0 : (ns + NS - 1) / NS;
}

static int reply(RedisModuleCtx *ctx, long long limited, long long limit, long long remaining,
                 long long retry, long long reset) {
    api.ReplyWithArray(ctx, 5);
    api.ReplyWithLongLong(ctx, limited);
    api.ReplyWithLongLong(ctx, limit);
    api.ReplyWithLongLong(ctx, remaining);
    api.ReplyWithLongLong(ctx, retry);
    return api.ReplyWithLongLong(ctx, reset);
}

/* Reads a field into *value and frees its text. NULL, an absent field, leaves *value as it
 * is. Returns API_ERR if the text is not a number. */
static int take_field(RedisModuleCtx *ctx, RedisModuleString *text, long long *value) {
    if (text == NULL) return API_OK;
    int result = api.StringToLongLong(text, value);
    api.FreeString(ctx, text);
    return result;
}

static void set_field(RedisModuleCtx *ctx, RedisModuleKey *key, RedisModuleString *field, int64_t n) {
    RedisModuleString *value = api.CreateStringFromLongLong(ctx, n);
    api.HashSet(key, HASH_PLAIN, field, value, NULL);
    api.FreeString(ctx, value);
}

static int decide(RedisModuleCtx *ctx, RedisModuleKey *key, RedisModuleString *name, int64_t limit,
                  int64_t interval, int64_t quantity) {
    int type = api.KeyType(key);
    if (type != TYPE_EMPTY && type != TYPE_HASH)
        return api.ReplyWithError(ctx, "WRONGTYPE Operation against a key holding the wrong kind of value");
    RedisModuleString *tat_text = NULL, *interval_text = NULL;
    if (type == TYPE_HASH)
        api.HashGet(key, HASH_PLAIN, field_tat, &tat_text, field_interval, &interval_text, NULL);
    long long tat = 0, old_interval = interval;
    int has_interval = interval_text != NULL;
    int bad = take_field(ctx, tat_text, &tat) != API_OK;
    bad |= take_field(ctx, interval_text, &old_interval) != API_OK;
    if (bad || old_interval < 1 || tat < 0 || tat > INT64_MAX - MAX_NS)
        return api.ReplyWithError(ctx, "ERR the rate limiter at this key is damaged");

    int64_t now = now_ns();
    if (tat < now) tat = now;
    if (old_interval != interval) { /* the units in use carry over to the new rate */
        __int128 used = (__int128)(tat - now) * interval / old_interval;
        tat = used > MAX_NS ? now + MAX_NS : now + (int64_t)used;
    }
    int64_t tolerance = limit * interval;
    if (quantity > limit || tat + quantity * interval > now + tolerance) {
        long long retry = quantity > limit ? -1 : ceil_seconds(tat + quantity * interval - now - tolerance);
        return reply(ctx, 1, limit, (now + tolerance - tat) / interval, retry, ceil_seconds(tat - now));
    }
    tat += quantity * interval;
    int64_t expiry = (tat + 999999) / 1000000;
    set_field(ctx, key, field_tat, tat);
    if (!has_interval || old_interval != interval) set_field(ctx, key, field_interval, interval);
    api.SetAbsExpire(key, expiry);
    api.Replicate(ctx, "HSET", "sclcl", name, "t", (long long)tat, "i", (long long)interval);
    api.Replicate(ctx, "PEXPIREAT", "sl", name, (long long)expiry);
    return reply(ctx, 0, limit, (now + tolerance - tat) / interval, -1, ceil_seconds(tat - now));
}

static int throttle(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 5 || argc > 6) return api.WrongArity(ctx);
    long long max_burst, count, period, quantity = 1;
    if (api.StringToLongLong(argv[2], &max_burst) != API_OK ||
        api.StringToLongLong(argv[3], &count) != API_OK ||
        api.StringToLongLong(argv[4], &period) != API_OK ||
        (argc == 6 && api.StringToLongLong(argv[5], &quantity) != API_OK))
        return api.ReplyWithError(ctx, "ERR value is not an integer");
    if (max_burst < 0 || max_burst >= MAX_NS || count < 1 || period < 1 || period > MAX_NS / NS ||
        quantity < 1 || period * NS < count)
        return api.ReplyWithError(ctx, "ERR value is out of range");
    int64_t limit = max_burst + 1, interval = period * NS / count;
    if ((__int128)limit * interval > MAX_NS) return api.ReplyWithError(ctx, "ERR value is out of range");

    RedisModuleKey *key = api.OpenKey(ctx, argv[1], KEY_READ | KEY_WRITE);
    int result = decide(ctx, key, argv[1], limit, interval, quantity);
    api.CloseKey(key);
    return result;
}

/* Always replies with five integers. With 2 steps or more it also opens the key and reads
 * two fields of a hash. With 3 or more it also writes one field, and the expiry of a new
 * key. With 4 it also replicates that write. */
static int least(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long steps = 0, sum = 0, at = now_ns();
    if (argc != 5 || api.StringToLongLong(argv[2], &steps) != API_OK) return api.WrongArity(ctx);
    if (steps >= 2) {
        RedisModuleKey *key = api.OpenKey(ctx, argv[1], KEY_READ | KEY_WRITE);
        RedisModuleString *tat = NULL, *interval = NULL;
        int is_new = api.KeyType(key) != TYPE_HASH;
        if (!is_new) api.HashGet(key, HASH_PLAIN, field_tat, &tat, field_interval, &interval, NULL);
        take_field(ctx, tat, &sum);
        take_field(ctx, interval, &sum);
        if (steps >= 3) {
            set_field(ctx, key, field_tat, at);
            if (is_new) {
                set_field(ctx, key, field_interval, 60);
                api.SetAbsExpire(key, at / 1000000 + 3600000);
            }
            if (steps >= 4) api.Replicate(ctx, "HSET", "scl", argv[1], "t", at);
        }
        api.CloseKey(key);
    }
    return reply(ctx, 0, steps, sum, -1, at % 3600);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (api_resolve(ctx) != API_OK) return API_ERR;
    api.SetModuleAttribs(ctx, "plain", 1, API_VERSION);
    field_tat = api.CreateString(NULL, "t", 1);
    field_interval = api.CreateString(NULL, "i", 1);
    if (api.CreateCommand(ctx, "plain.least", least, "write deny-oom fast", 1, 1, 1) != API_OK) return API_ERR;
    return api.CreateCommand(ctx, "plain.throttle", throttle, "write deny-oom fast", 1, 1, 1);
}
