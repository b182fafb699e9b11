/* Opening keys of any kind, and opening them again. */
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
    SHIM_CLEAR(key, length, checksum);
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

SHIM_RARE int shim_open_again(RedisModuleCtx *ctx, const shim_command *command, shim_key *key) {
    int32_t kind = key->kind;
    open_key(ctx, command, key);
    return key->kind == kind && (kind == SHIM_ABSENT || (int64_t)api.ValueLength(key->handle) == key->length);
}
