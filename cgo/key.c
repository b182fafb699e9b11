/* Keys of any kind: opening them, expiries, keyspace events, and doing what Go said. */
#include "shim.h"

#include <string.h>

/* Opens a key for writing that was just absent. */
static SHIM_RARE void open_absent(RedisModuleCtx *ctx, shim_key *key) {
    if (key->handle == NULL) return; /* opened for reading */
    api.CloseKey(key->handle);
    key->handle = api.OpenKey(ctx, key->name, KEY_READ | KEY_WRITE);
    key->kind = api.KeyType(key->handle);
}

/* Opens a key, and finds its kind. If the key has expired, or is absent and opened for reading, the
 * server sends an event, and another module that hears it may change any key: no other handle may be
 * open. That module may also make this key again, so a key that is absent is opened for writing once
 * more. Returns whether the key was there at once: then there was no event. */
static inline __attribute__((always_inline)) int open_key(RedisModuleCtx *ctx, const shim_command *command,
                                                          shim_key *key) {
    key->handle = api.OpenKey(ctx, key->name, command->writes ? KEY_READ | KEY_WRITE : KEY_READ);
    key->kind = api.KeyType(key->handle); /* of NULL, too */
    if (key->kind != SHIM_ABSENT) return 1;
    open_absent(ctx, key);
    return 0;
}

void shim_close_key(shim_key *key) {
    api.CloseKey(key->handle); /* unless it is NULL */
    key->handle = NULL;
}

static const char changing[] = "ERR another module keeps changing the keys of this call";

const char *shim_settle(RedisModuleCtx *ctx, const shim_command *command, shim_call *call, RedisModuleString **argv) {
    for (int64_t k = 0; k < call->keys.len; k++) {
        call->keys.at[k].name = argv[call->keys.at[k].word + 1];
        call->keys.at[k].kind = SHIM_ANY;
        call->keys.at[k].handle = NULL;
    }
    for (int rounds = 0; rounds <= SHIM_CLAUSES; rounds++) {
        int quiet = 1;
        shim_key *open = NULL;
        for (int64_t k = 0; k < call->keys.len; k++) {
            shim_key *key = &call->keys.at[k];
            if (key->kind == SHIM_ABSENT) continue;
            if (open != NULL) shim_close_key(open);
            open = key;
            quiet &= open_key(ctx, command, key);
        }
        if (quiet) return NULL;
        shim_close_key(open);
    }
    return changing;
}

SHIM_RARE void shim_close_keys(shim_call *call) {
    for (int64_t k = 0; k < call->keys.len; k++) shim_close_key(&call->keys.at[k]);
}

/* Opens a key again. Returns whether it was there at once, as it was loaded. The text of a string may have moved. */
static int reopen(shim_call *call, shim_key *key) {
    int32_t kind = key->kind;
    if (!open_key(call->ctx, call->command, key) || key->kind != kind) return 0;
    if ((int64_t)api.ValueLength(key->handle) != key->length) return 0;
    if (kind == SHIM_STRING) shim_load_string(call->ctx, key);
    return 1;
}

/* The keys are opened one at a time first: another module may hear an event for a key that it has changed. */
SHIM_RARE int shim_reopen_keys(shim_call *call) {
    for (int stay = 0; stay < 2; stay++) {
        for (int64_t k = 0; k < call->keys.len; k++) {
            shim_key *key = &call->keys.at[k];
            if (key->kind == SHIM_ABSENT) continue;
            int same = reopen(call, key);
            if (!same || !stay) shim_close_key(key);
            if (same) continue;
            memcpy(call->error, changing, sizeof changing);
            return 0;
        }
    }
    return 1;
}

void shim_open_key(RedisModuleCtx *ctx, const shim_command *command, shim_key *key,
                   RedisModuleString *name, shim_entry *entries, int settled) {
    shim_clear(&key->length, &key->checksum);
    key->expires_at = -1;
    key->entries.at = entries;
    key->entries.cap = SHIM_STACK_ENTRIES;
    key->name = name;
    key->events = 0;
    if (!settled || (key->kind != SHIM_ABSENT && key->handle == NULL)) open_key(ctx, command, key);
    if (key->kind == SHIM_ABSENT) return;
    key->length = (int64_t)api.ValueLength(key->handle);
    if (key->wants == SHIM_ANY) key->expires_at = api.GetAbsExpire(key->handle);
    if (key->kind == SHIM_STRING) shim_load_string(ctx, key);
}

/* Opens a key again, to change it. Returns 0 if another module has changed it since it was loaded:
 * then the key is left alone, as if that module had come after this call. */
static SHIM_RARE int open_again(RedisModuleCtx *ctx, const shim_command *command, shim_key *key) {
    int32_t kind = key->kind;
    open_key(ctx, command, key);
    return key->kind == kind && (kind == SHIM_ABSENT || (int64_t)api.ValueLength(key->handle) == key->length);
}

int shim_is_there(RedisModuleCtx *ctx, shim_key *key, int32_t kind) {
    api.CloseKey(key->handle);
    key->handle = api.OpenKey(ctx, key->name, KEY_READ | KEY_WRITE);
    if (api.KeyType(key->handle) == kind) return 1;
    key->expire_from = 0;
    return 0;
}

int shim_set_expiry(shim_key *key) {
    if (key->expire_from == 0) return 0;
    long long at = api.GetAbsExpire(key->handle);
    if (at >= key->expire_from && at <= key->expire_to) return 0;
    api.SetAbsExpire(key->handle, key->expire_to);
    key->events |= SHIM_EVENT_EXPIRE;
    return 1;
}

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
    if (key->handle == NULL && !open_again(ctx, command, key)) return;
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
