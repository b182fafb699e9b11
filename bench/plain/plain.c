/* A module to compare with, in the plainest C.
 *
 * PLAIN.THROTTLE key max_burst count period [quantity] replies with the five integers of redis-cell. It keeps the TAT and the
 * interval, rounded down to whole ns, in a hash. Every admitted call sets an absolute expiry and replicates two commands.
 *
 * PLAIN.LEAST key steps does the least that a limiter in any module must do, and decides nothing. It replies with five integers.
 * With 2 steps it also opens the key and reads two fields of a hash. With 4 it also writes one field, and replicates that. */
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

static long long seconds(int64_t ns) { return ns <= 0 ? 0 : (ns + NS - 1) / NS; }

static int reply(RedisModuleCtx *ctx, const long long numbers[5]) {
    api.ReplyWithArray(ctx, 5);
    for (int i = 0; i < 5; i++) api.ReplyWithLongLong(ctx, numbers[i]);
    return API_OK;
}

/* Reads the two fields. An absent one leaves its value as it is. */
static int read_fields(RedisModuleCtx *ctx, RedisModuleKey *key, long long *tat, long long *interval) {
    RedisModuleString *texts[2] = {NULL, NULL};
    long long *values[2] = {tat, interval};
    int result = API_OK;
    if (api.KeyType(key) == TYPE_HASH) api.HashGet(key, HASH_PLAIN, field_tat, &texts[0], field_interval, &texts[1], NULL);
    for (int i = 0; i < 2; i++) {
        if (texts[i] == NULL) continue;
        if (api.StringToLongLong(texts[i], values[i]) != API_OK) result = API_ERR;
        api.FreeString(ctx, texts[i]);
    }
    return result;
}

static void set_field(RedisModuleCtx *ctx, RedisModuleKey *key, RedisModuleString *field, int64_t n) {
    RedisModuleString *value = api.CreateStringFromLongLong(ctx, n);
    api.HashSet(key, HASH_PLAIN, field, value, NULL);
    api.FreeString(ctx, value);
}

static int decide(RedisModuleCtx *ctx, RedisModuleKey *key, RedisModuleString *name, int64_t limit, int64_t interval, int64_t quantity) {
    long long tat = 0, old = 0;
    if (api.KeyType(key) != TYPE_EMPTY && api.KeyType(key) != TYPE_HASH)
        return api.ReplyWithError(ctx, "WRONGTYPE Operation against a key holding the wrong kind of value");
    if (read_fields(ctx, key, &tat, &old) != API_OK || old < 0 || tat < 0 || tat > INT64_MAX - MAX_NS)
        return api.ReplyWithError(ctx, "ERR the rate limiter at this key is damaged");

    int64_t now = now_ns(), tolerance = limit * interval;
    if (tat < now) tat = now;
    if (old != 0 && old != interval) tat = now + (int64_t)((__int128)(tat - now) * interval / old); /* usage carries over */
    if (quantity > limit || tat + quantity * interval > now + tolerance) {
        long long retry = quantity > limit ? -1 : seconds(tat + quantity * interval - now - tolerance);
        return reply(ctx, (long long[]){1, limit, (now + tolerance - tat) / interval, retry, seconds(tat - now)});
    }
    tat += quantity * interval;
    int64_t expiry = (tat + 999999) / 1000000;
    set_field(ctx, key, field_tat, tat);
    if (old != interval) set_field(ctx, key, field_interval, interval);
    api.SetAbsExpire(key, expiry);
    api.Replicate(ctx, "HSET", "sclcl", name, "t", tat, "i", (long long)interval);
    api.Replicate(ctx, "PEXPIREAT", "sl", name, (long long)expiry);
    return reply(ctx, (long long[]){0, limit, (now + tolerance - tat) / interval, -1, seconds(tat - now)});
}

static int throttle(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long n[4] = {0, 0, 0, 1}; /* max_burst, count, period, quantity */
    if (argc < 5 || argc > 6) return api.WrongArity(ctx);
    for (int i = 2; i < argc; i++)
        if (api.StringToLongLong(argv[i], &n[i - 2]) != API_OK) return api.ReplyWithError(ctx, "ERR value is not an integer");
    if (n[0] < 0 || n[0] >= MAX_NS || n[1] < 1 || n[2] < 1 || n[2] > MAX_NS / NS || n[3] < 1 || n[2] * NS < n[1] ||
        (__int128)(n[0] + 1) * (n[2] * NS / n[1]) > MAX_NS)
        return api.ReplyWithError(ctx, "ERR value is out of range");

    RedisModuleKey *key = api.OpenKey(ctx, argv[1], KEY_READ | KEY_WRITE);
    int result = decide(ctx, key, argv[1], n[0] + 1, n[2] * NS / n[1], n[3]);
    api.CloseKey(key);
    return result;
}

static int least(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long steps = 0, tat = 0, interval = 0, now = now_ns();
    if (argc != 3 || api.StringToLongLong(argv[2], &steps) != API_OK) return api.WrongArity(ctx);
    if (steps >= 2) {
        RedisModuleKey *key = api.OpenKey(ctx, argv[1], KEY_READ | KEY_WRITE);
        int is_new = api.KeyType(key) != TYPE_HASH;
        read_fields(ctx, key, &tat, &interval);
        if (steps >= 4) {
            set_field(ctx, key, field_tat, now);
            if (is_new) {
                set_field(ctx, key, field_interval, 60);
                api.SetAbsExpire(key, now / 1000000 + 3600000);
            }
            api.Replicate(ctx, "HSET", "scl", argv[1], "t", now);
        }
        api.CloseKey(key);
    }
    return reply(ctx, (long long[]){0, steps, tat, -1, now % 3600});
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
