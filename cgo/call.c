/* The life of one call: open, load, decide in Go, apply, replicate, reply, close. */
#include "shim.h"

#include <string.h>

#include "_cgo_export.h"

/* Calls with more words than this take memory from the server's allocator. */
enum { STACK_ARGS = 8 };

/* How many keys the words name, and where they begin. Where the number of keys does
 * not fit the words none is opened: Go will say what is wrong. */
static int find_keys(const shim_command *command, RedisModuleString **argv, int argc, int *first) {
    if (command->words_per_key == 0) {
        *first = 1;
        return 1;
    }
    *first = 2;
    long long n;
    if (api.StringToLongLong(argv[1], &n) != API_OK || n < 1 || n > SHIM_CELLS) return 0;
    return argc - 2 >= n * (1 + command->words_per_key) ? (int)n : 0;
}

/* Tells a cluster where the keys are. It asks by calling the command: on Redis 7.0 and
 * 8.0 and on Valkey the key spec, which says the same, serves ACL and COMMAND GETKEYS
 * but not the choice of the slot. */
static int tell_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long n;
    if (argc < 2 || api.StringToLongLong(argv[1], &n) != API_OK || n > argc - 2) return API_OK;
    for (int i = 0; i < n; i++) {
        api.KeyAtPosWithFlags(ctx, 2 + i, KEYSPEC_RW | KEYSPEC_ACCESS | KEYSPEC_UPDATE);
    }
    return API_OK;
}

static int same_name(RedisModuleString *a, RedisModuleString *b) {
    size_t len_a, len_b;
    const char *bytes_a = api.StringPtrLen(a, &len_a), *bytes_b = api.StringPtrLen(b, &len_b);
    return len_a == len_b && memcmp(bytes_a, bytes_b, len_a) == 0;
}

/* Opens the keys, each once, and loads the cell that each word asks for: the word's
 * position among the repeats of its key. */
static void load(RedisModuleCtx *ctx, const shim_command *command, shim_call *call,
                 RedisModuleString **names, int n) {
    for (int i = 0; i < n; i++) {
        int32_t k = 0, repeats = 0;
        while (k < call->keys.len && !same_name(call->keys.at[k].name, names[i])) k++;
        if (k == call->keys.len) {
            shim_load_key(ctx, command, &call->keys.at[k], names[i]);
            call->keys.len = call->keys.cap = k + 1;
        }
        if (command->state != SHIM_HASH) continue;
        for (int j = 0; j < i; j++) repeats += call->cells.at[j].key == k;
        shim_load_cell(&call->keys.at[k], &call->cells.at[i], k, repeats);
        call->asked = i + 1;
        call->cells.len = call->cells.cap = i + 1;
    }
}

/* Loads what else there is in hashes that hold more than was read: the fields that few
 * cells have, and the cells that the words did not ask for. A key's expiry depends on all
 * of them, and a field that belongs to none means that the hash is not ours. Returns
 * memory of the server's allocator that the caller frees, or NULL. */
static shim_cell *load_more(shim_call *call) {
    shim_cell *more = NULL;
    for (int32_t k = 0; k < call->keys.len; k++) {
        shim_key *key = &call->keys.at[k];
        if (key->fields == 0 || key->fields == key->length) continue;
        int32_t next = 0;
        for (int64_t c = 0; c < call->asked; c++) {
            if (call->cells.at[c].key != k) continue;
            if (call->cells.at[c].found) shim_load_rest(key, &call->cells.at[c]);
            next++;
        }
        for (int found = 1; found && key->fields < key->length && next < SHIM_CELLS; next++) {
            if (call->cells.len == call->cells.cap) {
                int64_t cap = call->cells.cap * 2;
                shim_cell *at = api.Alloc(sizeof *at * (size_t)cap);
                memcpy(at, call->cells.at, sizeof *at * (size_t)call->cells.len);
                if (more != NULL) api.Free(more);
                call->cells.at = more = at;
                call->cells.cap = cap;
            }
            shim_cell *cell = &more[call->cells.len++];
            shim_load_cell(key, cell, k, next);
            found = cell->found != 0;
            if (found) shim_load_rest(key, cell);
        }
    }
    return more;
}

static void reply(RedisModuleCtx *ctx, const shim_call *call) {
    if (call->shape == SHIM_INTEGER) {
        api.ReplyWithLongLong(ctx, call->reply[0]);
        return;
    }
    int nested = call->shape == SHIM_NESTED ? call->asked : 0;
    api.ReplyWithArray(ctx, call->replies + nested);
    for (int i = 0; i < call->replies; i++) api.ReplyWithLongLong(ctx, call->reply[i]);
    for (int i = 0; i < nested; i++) {
        api.ReplyWithArray(ctx, 5);
        for (int j = 0; j < 5; j++) api.ReplyWithLongLong(ctx, call->cells.at[i].reply[j]);
    }
}

static int shim_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int index) {
    shim_command *command = &shim_loaded->commands[index];
    if (command->words_per_key && api.IsKeysPositionRequest(ctx)) return tell_keys(ctx, argv, argc);
    if (argc < command->min_arity || (command->max_arity && argc > command->max_arity)) {
        command->errors++;
        return api.WrongArity(ctx);
    }

    shim_text stack_args[STACK_ARGS], *args = stack_args;
    if (argc - 1 > STACK_ARGS) args = api.Alloc(sizeof *args * (size_t)(argc - 1));
    for (int i = 1; i < argc; i++) args[i - 1].bytes = api.StringPtrLen(argv[i], &args[i - 1].len);

    int first, n = find_keys(command, argv, argc, &first);
    shim_key keys[n > 0 ? n : 1];
    shim_cell cells[n > 0 ? n : 1];
    shim_entry entries[SHIM_STACK_ENTRIES];
    shim_call call;
    call.args.at = args;
    call.args.len = call.args.cap = argc - 1;
    call.keys.at = keys;
    call.keys.len = call.keys.cap = 0;
    call.cells.at = cells;
    call.cells.len = call.cells.cap = 0;
    call.entries.at = entries;
    call.entries.len = 0;
    call.entries.cap = SHIM_STACK_ENTRIES;
    call.asked = 0;
    call.limited = 0;
    call.shape = SHIM_INTEGERS;
    call.replies = 0;
    call.add_prefix = 0;
    call.add_arg = 0;
    call.set_len = 0;
    load(ctx, command, &call, argv + first, n);
    shim_cell *more = load_more(&call);
    call.now_us = shim_wall_us();

    int error = goCall(&call, index);
    shim_clock_last_us = call.now_us;

    if (error == SHIM_WRONG_ARITY) {
        command->errors++;
        api.WrongArity(ctx);
    } else if (error) {
        command->errors++;
        api.ReplyWithError(ctx, shim_loaded->errors[error]);
    } else {
        if (call.limited) {
            command->limited++;
        } else {
            command->admitted++;
        }
        for (int32_t k = 0; command->writes && k < call.keys.len; k++)
            keys[k].events = shim_apply(ctx, &call, k);
        reply(ctx, &call);
    }
    /* Closed before the events: whoever hears them may change the keys. */
    for (int32_t k = 0; k < call.keys.len; k++) api.CloseKey(keys[k].handle);
    for (int32_t k = 0; k < call.keys.len; k++) {
        if (keys[k].events) shim_notify(ctx, keys[k].name, keys[k].events);
    }
    shim_free_entries(&call);
    if (more) api.Free(more);
    if (args != stack_args) api.Free(args);
    return API_OK;
}

#define TRAMPOLINE(n)                                                             \
    static int run_##n(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) { \
        return shim_run(ctx, argv, argc, n);                                      \
    }
#define ALL_TRAMPOLINES(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
ALL_TRAMPOLINES(TRAMPOLINE)
#define TRAMPOLINE_NAME(n) run_##n,
const RedisModuleCmdFunc shim_trampolines[SHIM_MAX_COMMANDS] = {ALL_TRAMPOLINES(TRAMPOLINE_NAME)};
