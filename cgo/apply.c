/* Doing what Go said to a key, and its keyspace events. */
#include "shim.h"

static SHIM_RARE void delete(RedisModuleCtx *ctx, shim_key *key) {
    api.DeleteKey(key->handle);
    api.Replicate(ctx, "DEL", "s", key->name);
    key->events |= SHIM_EVENT_DEL;
    key->kind = SHIM_ABSENT;
}

static void change(RedisModuleCtx *ctx, shim_call *call, shim_key *key) {
    if (key->kind != SHIM_ABSENT && key->kind != key->becomes - SHIM_BECOMES_ABSENT) delete(ctx, key);
    switch (key->becomes) {
    case SHIM_BECOMES_HASH: shim_apply_hash(ctx, call, key); break;
    case SHIM_BECOMES_ZSET: shim_apply_zset(ctx, call, key); break;
    case SHIM_BECOMES_STRING: shim_apply_string(ctx, key); return; /* with its expiry */
    }
    if (shim_set_expiry(key)) api.Replicate(ctx, "PEXPIREAT", "sl", key->name, (long long)key->expire_to);
}

void shim_apply(RedisModuleCtx *ctx, const shim_command *command, shim_call *call, shim_key *key) {
    if (key->becomes == SHIM_BECOMES_UNCHANGED) return;
    if (key->handle == NULL && !shim_open_again(ctx, command, key)) return;
    change(ctx, call, key);
    if (key->events) api.SignalModifiedKey(ctx, key->name);
}

void shim_notify(RedisModuleCtx *ctx, const shim_key *key) {
    static const struct { int class; const char *text; } events[] = { /* by bit of SHIM_EVENT_ */
        {NOTIFY_GENERIC, "del"}, {NOTIFY_HASH, "hset"}, {NOTIFY_HASH, "hdel"},      {NOTIFY_STRING, "set"},
        {NOTIFY_ZSET, "zadd"},   {NOTIFY_ZSET, "zrem"}, {NOTIFY_GENERIC, "expire"}, {NOTIFY_GENERIC, "del"},
    };
    for (unsigned left = (unsigned)key->events; left != 0; left &= left - 1) {
        int i = __builtin_ctz(left);
        api.NotifyKeyspaceEvent(ctx, events[i].class, events[i].text, key->name);
    }
}
