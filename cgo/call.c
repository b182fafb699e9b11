/* The life of one call: open, read, decide in Go, apply, replicate, reply, close. */
#include "shim.h"

#include <string.h>

#include "_cgo_export.h"

/* Calls with more words than this, or hashes with more than one cell, take memory
 * from the server's allocator; the rest runs on the stack alone. */
enum { STACK_ARGS = 8 };

static int32_t kind_of(RedisModuleKey *handle) {
    switch (api.KeyType(handle)) {
    case TYPE_EMPTY: return SHIM_ABSENT;
    case TYPE_STRING: return SHIM_STRING;
    case TYPE_HASH: return SHIM_HASH;
    case TYPE_ZSET: return SHIM_ZSET;
    default: return SHIM_OTHER;
    }
}

/* Reads fields first..last-1 of a cell. The values are copies that HashGet makes for
 * us; freed here. */
static void read_fields(const shim_key *key, shim_cell *cell, int first, int last) {
    RedisModuleString *value[2];
    RedisModuleString *const *name = shim_fields[cell->index];
    for (int i = first; i < last; i += 2) {
        api.HashGet(key->handle, 0, name[i], &value[0], name[i + 1], &value[1], NULL);
        for (int j = 0; j < 2; j++) {
            cell->value[i + j] = 0;
            if (value[j] == NULL) continue;
            long long n = 0;
            cell->found |= 1u << (i + j);
            if (api.StringToLongLong(value[j], &n) != API_OK) cell->bad |= 1u << (i + j);
            cell->value[i + j] = n;
            api.FreeString(NULL, value[j]);
        }
    }
}

/* Reads one cell; returns how many of the key's fields it accounts for. Most hashes
 * have two fields, and the other two need not be looked for. */
static int read_cell(const shim_key *key, shim_cell *cell, int32_t key_index, int32_t index) {
    memset(cell, 0, sizeof *cell);
    cell->key = key_index;
    cell->index = index;
    if (key->kind != SHIM_HASH) return 0;
    read_fields(key, cell, 0, 2);
    if (key->length > 2) read_fields(key, cell, 2, SHIM_FIELDS);
    return __builtin_popcount(cell->found);
}

/* Reads the cells of a hash that the call did not ask for: the key's expiry depends
 * on all of them, and a field that belongs to none means that the hash is not ours.
 * Returns memory of the server's allocator that the caller frees, or NULL. */
static shim_cell *read_further_cells(shim_call *call, int fields) {
    shim_key *key = &call->keys.at[0];
    if (key->kind != SHIM_HASH || fields == 0 || fields >= key->length) return NULL;
    shim_cell *cells = api.Alloc(sizeof(shim_cell) * SHIM_CELLS);
    cells[0] = call->cells.at[0];
    int n = 1;
    for (int found = 1; n < SHIM_CELLS && fields < key->length && found > 0; n++) {
        found = read_cell(key, &cells[n], 0, n);
        fields += found;
    }
    call->cells.at = cells;
    call->cells.len = call->cells.cap = n;
    return cells;
}

static void open_key(RedisModuleCtx *ctx, shim_key *key, RedisModuleString *name, int writes) {
    memset(key, 0, sizeof *key);
    key->name = name;
    key->handle = api.OpenKey(ctx, name, writes ? KEY_READ | KEY_WRITE : KEY_READ);
    if (key->handle == NULL) return;
    key->kind = kind_of(key->handle);
    if (key->kind == SHIM_HASH) {
        key->length = (int64_t)api.ValueLength(key->handle);
    } else if (key->kind == SHIM_STRING && api.ValueLength(key->handle) == SHIM_ADOPTED_LEN) {
        /* Only then: to look at a string's bytes is to change how the server stores it. */
        key->text.bytes = api.StringDMA(key->handle, &key->text.len, KEY_READ);
    }
}

/* Which keyspace events a key is owed. */
enum { EVENT_DEL = 1 << 0, EVENT_HSET = 1 << 1, EVENT_HDEL = 1 << 2, EVENT_EXPIRE = 1 << 3 };

/* Sets and removes the fields of a key's cells, here and in the replication stream.
 * A vector's strings are ours: Replicate keeps its own references. */
static int apply_cells(RedisModuleCtx *ctx, shim_call *call, int32_t key_index) {
    shim_key *key = &call->keys.at[key_index];
    size_t most = 1 + 2 * SHIM_FIELDS * (size_t)call->cells.len;
    RedisModuleString *set[most], *unset[most];
    size_t num_set = 0, num_unset = 0;
    set[num_set++] = unset[num_unset++] = key->name;
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

/* Makes one key what Go wants it to be; returns the events it is owed. What is
 * replicated are the effects, with absolute times. */
static int apply(RedisModuleCtx *ctx, shim_call *call, int32_t key_index) {
    shim_key *key = &call->keys.at[key_index];
    int events = 0;
    if (key->remove && key->kind != SHIM_ABSENT) {
        api.DeleteKey(key->handle);
        api.Replicate(ctx, "DEL", "s", key->name);
        events |= EVENT_DEL;
    }
    events |= apply_cells(ctx, call, key_index);
    if (key->expire_from > 0) {
        /* Most calls find the expiry good enough: a look is cheaper than a write and
         * a second replicated command. */
        long long at = api.GetAbsExpire(key->handle);
        if (at < key->expire_from || at > key->expire_to) {
            api.SetAbsExpire(key->handle, key->expire_to);
            api.Replicate(ctx, "PEXPIREAT", "sl", key->name, (long long)key->expire_to);
            events |= EVENT_EXPIRE;
        }
    }
    if (events) api.SignalModifiedKey(ctx, key->name);
    return events;
}

static void notify(RedisModuleCtx *ctx, RedisModuleString *name, int events) {
    if (events & EVENT_DEL) api.NotifyKeyspaceEvent(ctx, NOTIFY_GENERIC, "del", name);
    if (events & EVENT_HSET) api.NotifyKeyspaceEvent(ctx, NOTIFY_HASH, "hset", name);
    if (events & EVENT_HDEL) api.NotifyKeyspaceEvent(ctx, NOTIFY_HASH, "hdel", name);
    if (events & EVENT_EXPIRE) api.NotifyKeyspaceEvent(ctx, NOTIFY_GENERIC, "expire", name);
}

static void reply(RedisModuleCtx *ctx, const shim_call *call) {
    api.ReplyWithArray(ctx, call->replies);
    for (int i = 0; i < call->replies; i++) api.ReplyWithLongLong(ctx, call->reply[i]);
}

static int shim_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int index) {
    shim_command *command = &shim_loaded->commands[index];
    if (argc < command->min_arity || (command->max_arity && argc > command->max_arity)) {
        command->errors++;
        return api.WrongArity(ctx);
    }

    shim_text stack_args[STACK_ARGS], *args = stack_args;
    if (argc - 1 > STACK_ARGS) args = api.Alloc(sizeof *args * (size_t)(argc - 1));
    for (int i = 1; i < argc; i++) args[i - 1].bytes = api.StringPtrLen(argv[i], &args[i - 1].len);

    shim_key key;
    shim_cell cell;
    shim_call call;
    open_key(ctx, &key, argv[1], command->writes);
    call.args.at = args;
    call.args.len = call.args.cap = argc - 1;
    call.keys.at = &key;
    call.keys.len = call.keys.cap = 1;
    call.cells.at = &cell;
    call.cells.len = call.cells.cap = 1;
    call.now_us = shim_wall_us();
    call.limited = 0;
    call.replies = 0;
    shim_cell *further = read_further_cells(&call, read_cell(&key, &cell, 0, 0));

    int error = goCall(&call, index);
    shim_clock_last_us = call.now_us;

    int events = 0;
    if (error) {
        command->errors++;
        api.ReplyWithError(ctx, shim_loaded->errors[error]);
    } else {
        if (call.limited) {
            command->limited++;
        } else {
            command->admitted++;
        }
        events = apply(ctx, &call, 0);
        reply(ctx, &call);
    }
    /* Closed before the events: whoever hears them may change the key. */
    api.CloseKey(key.handle);
    if (events) notify(ctx, key.name, events);
    if (further) api.Free(further);
    if (args != stack_args) api.Free(args);
    return API_OK;
}

#define TRAMPOLINE(n)                                                                     \
    static int run_##n(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {         \
        return shim_run(ctx, argv, argc, n);                                              \
    }
#define ALL_TRAMPOLINES(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
ALL_TRAMPOLINES(TRAMPOLINE)
#define TRAMPOLINE_NAME(n) run_##n,
const RedisModuleCmdFunc shim_trampolines[SHIM_MAX_COMMANDS] = {ALL_TRAMPOLINES(TRAMPOLINE_NAME)};
