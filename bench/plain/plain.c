/* The least that a limiter in any module must do, in the plainest C: PLAIN.LEAST key steps decides nothing, and replies with five
 * integers. With 2 steps it also opens the key and reads two fields of a hash. With 4 it also writes one field, and replicates
 * that. */
#include "../../cgo/api.h"

#include <time.h>

enum { HASH_PLAIN = 0 };

static RedisModuleString *field_tat, *field_interval;

/* Reads the two fields. An absent one leaves its value as it is. */
static void read_fields(RedisModuleCtx *ctx, RedisModuleKey *key, long long *tat, long long *interval) {
    RedisModuleString *texts[2] = {NULL, NULL};
    long long *values[2] = {tat, interval};
    if (api.KeyType(key) == TYPE_HASH) api.HashGet(key, HASH_PLAIN, field_tat, &texts[0], field_interval, &texts[1], NULL);
    for (int i = 0; i < 2; i++) {
        if (texts[i] == NULL) continue;
        api.StringToLongLong(texts[i], values[i]);
        api.FreeString(ctx, texts[i]);
    }
}

static void set_field(RedisModuleCtx *ctx, RedisModuleKey *key, RedisModuleString *field, int64_t n) {
    RedisModuleString *value = api.CreateStringFromLongLong(ctx, n);
    api.HashSet(key, HASH_PLAIN, field, value, NULL);
    api.FreeString(ctx, value);
}

static int least(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    long long steps = 0, tat = 0, interval = 0, now = t.tv_sec * 1000000000LL + t.tv_nsec;
    if (argc != 3 || api.StringToLongLong(argv[2], &steps) != API_OK) return api.ReplyWithError(ctx, "ERR wrong arguments");
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
    const long long reply[5] = {0, steps, tat, -1, now % 3600};
    api.ReplyWithArray(ctx, 5);
    for (int i = 0; i < 5; i++) api.ReplyWithLongLong(ctx, reply[i]);
    return API_OK;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (api_resolve(ctx) != API_OK) return API_ERR;
    api.SetModuleAttribs(ctx, "plain", 1, API_VERSION);
    field_tat = api.CreateString(NULL, "t", 1);
    field_interval = api.CreateString(NULL, "i", 1);
    return api.CreateCommand(ctx, "plain.least", least, "write deny-oom fast", 1, 1, 1);
}
