/* What the keys hold: into the record before Go decides, and back afterwards. All
 * that is changed is replicated as plain commands with absolute times. */
#include "shim.h"

#include <string.h>

/* Loading. */

static int32_t kind_of(RedisModuleKey *handle) {
    switch (api.KeyType(handle)) {
    case TYPE_EMPTY: return SHIM_ABSENT;
    case TYPE_STRING: return SHIM_STRING;
    case TYPE_HASH: return SHIM_HASH;
    case TYPE_ZSET: return SHIM_ZSET;
    default: return SHIM_OTHER;
    }
}

void shim_load_key(RedisModuleCtx *ctx, const shim_command *command, shim_key *key,
                   RedisModuleString *name) {
    memset(key, 0, sizeof *key);
    key->name = name;
    key->handle = api.OpenKey(ctx, name, command->writes ? KEY_READ | KEY_WRITE : KEY_READ);
    if (key->handle == NULL) return;
    key->kind = kind_of(key->handle);
    key->length = (int64_t)api.ValueLength(key->handle);
    /* To look at a string's bytes is to change how the server stores it: only if it may
     * be ours. */
    int ours = command->state == SHIM_STRING ||
               (command->state == SHIM_HASH && key->length == SHIM_ADOPTED_LEN);
    if (key->kind == SHIM_STRING && ours)
        key->text.bytes = api.StringDMA(key->handle, &key->text.len, KEY_READ);
}

/* Reads fields i and i+1 of a cell. The values are copies that HashGet makes for us;
 * freed here. */
static void read_two_fields(shim_key *key, shim_cell *cell, int i) {
    RedisModuleString *value[2];
    RedisModuleString *const *name = &shim_fields[cell->index][i];
    api.HashGet(key->handle, 0, name[0], &value[0], name[1], &value[1], NULL);
    for (int j = 0; j < 2; j++) {
        if (value[j] == NULL) continue;
        long long n = 0;
        if (api.StringToLongLong(value[j], &n) != API_OK) cell->bad |= 1u << (i + j);
        api.FreeString(NULL, value[j]);
        cell->value[i + j] = n;
        cell->found |= 1u << (i + j);
        key->fields++;
    }
}

/* Reads the fields that every cell has. */
void shim_load_cell(shim_key *key, shim_cell *cell, int32_t key_index, int32_t index) {
    memset(cell, 0, sizeof *cell);
    cell->key = key_index;
    cell->index = index;
    if (key->kind == SHIM_HASH) read_two_fields(key, cell, 0);
}

/* Reads the fields that few cells have. */
void shim_load_rest(shim_key *key, shim_cell *cell) {
    read_two_fields(key, cell, 2);
}

/* Applying. Which keyspace events a key is owed: */
enum {
    EVENT_DEL = 1 << 0,
    EVENT_HSET = 1 << 1,
    EVENT_HDEL = 1 << 2,
    EVENT_SET = 1 << 3,
    EVENT_ZADD = 1 << 4,
    EVENT_ZREM = 1 << 5,
    EVENT_EXPIRE = 1 << 6,
    EVENT_EMPTIED = 1 << 7
};

void shim_notify(RedisModuleCtx *ctx, RedisModuleString *name, int events) {
    static const struct { int event, class; const char *text; } names[] = {
        {EVENT_DEL, NOTIFY_GENERIC, "del"},       {EVENT_HSET, NOTIFY_HASH, "hset"},
        {EVENT_HDEL, NOTIFY_HASH, "hdel"},        {EVENT_SET, NOTIFY_STRING, "set"},
        {EVENT_ZADD, NOTIFY_ZSET, "zadd"},        {EVENT_ZREM, NOTIFY_ZSET, "zrem"},
        {EVENT_EXPIRE, NOTIFY_GENERIC, "expire"}, {EVENT_EMPTIED, NOTIFY_GENERIC, "del"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (events & names[i].event) api.NotifyKeyspaceEvent(ctx, names[i].class, names[i].text, name);
    }
}

/* Sets and removes the fields of a key's cells. The strings made here are ours:
 * Replicate keeps its own references. */
static int apply_cells(RedisModuleCtx *ctx, shim_call *call, int32_t key_index) {
    shim_key *key = &call->keys.at[key_index];
    size_t most = 1;
    for (int64_t c = 0; c < call->cells.len; c++) {
        if (call->cells.at[c].key == key_index) most += 2 * SHIM_FIELDS;
    }
    RedisModuleString *set[most], *unset[most];
    size_t num_set = 1, num_unset = 1;
    set[0] = unset[0] = key->name;
    for (int64_t c = 0; c < call->cells.len; c++) {
        shim_cell *cell = &call->cells.at[c];
        if (cell->key != key_index) continue;
        for (int i = 0; i < SHIM_FIELDS; i++) {
            RedisModuleString *name = shim_fields[cell->index][i];
            if (cell->set & (1u << i)) {
                RedisModuleString *value = api.CreateStringFromLongLong(NULL, cell->value[i]);
                api.HashSet(key->handle, 0, name, value, NULL);
                set[num_set++] = name;
                set[num_set++] = value;
            } else if (cell->unset & (1u << i)) {
                api.HashSet(key->handle, 0, name, HASH_FIELD_DELETE, NULL);
                unset[num_unset++] = name;
            }
        }
    }
    int events = 0;
    if (num_set > 1) {
        api.Replicate(ctx, "HSET", "v", set, num_set);
        for (size_t i = 2; i < num_set; i += 2) api.FreeString(NULL, set[i]);
        events |= EVENT_HSET;
    }
    if (num_unset > 1) {
        api.Replicate(ctx, "HDEL", "v", unset, num_unset);
        events |= EVENT_HDEL;
    }
    return events;
}

/* Adds a member and removes others, in this order: a sorted set that gets empty is
 * deleted, and its expiry with it. */
static int apply_zset(RedisModuleCtx *ctx, shim_call *call) {
    shim_key *key = &call->keys.at[0];
    int events = 0;
    if (call->add_prefix) {
        shim_text set = {call->set, (size_t)call->set_len};
        const shim_text *text = call->add_arg ? &call->args.at[call->add_arg] : &set;
        RedisModuleString *member = shim_member(call->add_prefix, text->bytes, text->len);
        int flags = 0;
        api.ZsetAdd(key->handle, -(double)call->add_time, member, &flags);
        /* A lease renewed at the same instant changes nothing. */
        if (flags & (ZADD_ADDED | ZADD_UPDATED)) {
            api.Replicate(ctx, "ZADD", "sls", key->name, -(long long)call->add_time, member);
            events |= EVENT_ZADD;
        }
        api.FreeString(NULL, member);
    }
    RedisModuleString *stack[SHIM_STACK_ENTRIES + 1], **dropped = stack;
    if (call->entries.len > SHIM_STACK_ENTRIES) dropped = api.Alloc(sizeof *dropped * (size_t)(call->entries.len + 1));
    size_t num_dropped = 1;
    dropped[0] = key->name;
    for (int64_t i = 0; i < call->entries.len; i++) {
        shim_entry *e = &call->entries.at[i];
        if (!e->drop) continue;
        api.ZsetRem(key->handle, e->string, NULL);
        dropped[num_dropped++] = e->string;
    }
    if (num_dropped > 1) {
        api.Replicate(ctx, "ZREM", "v", dropped, num_dropped);
        events |= EVENT_ZREM;
        if (api.KeyType(key->handle) == TYPE_EMPTY) events |= EVENT_EMPTIED;
    }
    if (dropped != stack) api.Free(dropped);
    return events;
}

/* Whether the expiry is none that Go can live with. Most calls find it good enough: a
 * look is cheaper than a write and a second replicated command. */
static int expiry_is_off(const shim_key *key) {
    if (key->expire_from == 0) return 0;
    long long at = api.GetAbsExpire(key->handle);
    return at < key->expire_from || at > key->expire_to;
}

/* A string and its expiry are one command. */
static int apply_string(RedisModuleCtx *ctx, shim_call *call) {
    shim_key *key = &call->keys.at[0];
    size_t len = (size_t)call->set_len;
    if (key->kind != SHIM_STRING || key->text.len != len) api.StringTruncate(key->handle, len);
    memcpy(api.StringDMA(key->handle, &len, KEY_WRITE), call->set, len);
    if (!expiry_is_off(key)) {
        api.Replicate(ctx, "SET", "sbc", key->name, call->set, len, "KEEPTTL");
        return EVENT_SET;
    }
    api.SetAbsExpire(key->handle, key->expire_to);
    api.Replicate(ctx, "SET", "sbcl", key->name, call->set, len, "PXAT", (long long)key->expire_to);
    return EVENT_SET | EVENT_EXPIRE;
}

int shim_apply(RedisModuleCtx *ctx, shim_call *call, int32_t key_index) {
    shim_key *key = &call->keys.at[key_index];
    int events = 0;
    /* Denied, or a peek: whatever else is changed has an expiry. */
    if (!key->remove && key->expire_from == 0 && call->entries.len == 0) return 0;
    if (key->remove && key->kind != SHIM_ABSENT) {
        api.DeleteKey(key->handle);
        api.Replicate(ctx, "DEL", "s", key->name);
        events |= EVENT_DEL;
    }
    if (key->remove && key->expire_from == 0) {
        /* Nothing takes its place. */
    } else if (call->set_len && !call->add_prefix) {
        events |= apply_string(ctx, call);
    } else {
        events |= call->asked ? apply_cells(ctx, call, key_index) : apply_zset(ctx, call);
        if (expiry_is_off(key)) {
            api.SetAbsExpire(key->handle, key->expire_to);
            api.Replicate(ctx, "PEXPIREAT", "sl", key->name, (long long)key->expire_to);
            events |= EVENT_EXPIRE;
        }
    }
    if (events) api.SignalModifiedKey(ctx, key->name);
    return events;
}
