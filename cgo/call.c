/* The life of one call: words, keys, the decision in Go, what becomes of the keys, the reply. */
#include "shim.h"

#include <string.h>

#include "_cgo_export.h"

/* Calls with more words than this take memory from the server's allocator. */
enum { STACK_ARGS = 8 };

int shim_has_run;

/* The memory of a call. The arrays are not cleared, so a call of one key touches the memory of one key. */
typedef struct room {
    shim_call call;
    shim_text args[STACK_ARGS];
    shim_key keys[SHIM_CLAUSES];
    shim_cell cells[SHIM_CLAUSES];
    shim_clause clauses[SHIM_CLAUSES];
    shim_entry entries[SHIM_CLAUSES][SHIM_STACK_ENTRIES];
} room;

/* Fills in a record that names no key and asks for nothing. */
static void start(room *r, RedisModuleCtx *ctx) {
    shim_call *call = &r->call;
    call->keys.at = r->keys;
    call->cells.at = r->cells;
    call->clauses.at = r->clauses;
    call->keys.len = call->cells.len = call->clauses.len = 0;
    call->keys.cap = call->cells.cap = call->clauses.cap = SHIM_CLAUSES;
    SHIM_CLEAR(call, scratch, ctx);
    call->ctx = ctx;
    call->error[0] = '\0';
}

/* Fills in the words: borrowed from argv. Up to STACK_ARGS of them are in stack. Returns NULL, or the
 * memory of more words, which the caller frees by api.Free. */
static shim_text *put_args(shim_call *call, shim_text *stack, RedisModuleString **argv, int argc) {
    int n = argc - 1;
    shim_text *args = stack, *owned = NULL;
    if (n > STACK_ARGS) args = owned = api.Alloc(sizeof *args * (size_t)n);
    for (int i = 0; i < n; i++) args[i].bytes = api.StringPtrLen(argv[i + 1], &args[i].len);
    call->args.at = args;
    call->args.len = call->args.cap = n;
    return owned;
}

/* Gives the server the positions of the keys, by the plan that a run of the call would use. If goPlan
 * returns an error there are no keys, and the call will reply with that error. */
static void name_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int index) {
    const shim_command *command = &shim_loaded->commands[index];
    if (argc < command->min_arity) return;
    room r;
    start(&r, ctx);
    shim_text *owned = put_args(&r.call, r.args, argv, argc);
    int flags = command->writes ? KEYSPEC_RW | KEYSPEC_ACCESS | KEYSPEC_UPDATE : KEYSPEC_RO | KEYSPEC_ACCESS;
    if (goPlan(&r.call, index) == 0) {
        for (int64_t k = 0; k < r.call.keys.len; k++) api.KeyAtPosWithFlags(ctx, r.keys[k].word + 1, flags);
    }
    if (owned != NULL) api.Free(owned);
}

static SHIM_RARE int reply_error(RedisModuleCtx *ctx, const shim_call *call, int error) {
    return api.ReplyWithError(ctx, call->error[0] ? call->error : shim_loaded->errors[error]);
}

/* Replies an array of n integers, and says that further elements follow. */
static void reply_integers(RedisModuleCtx *ctx, const int64_t *integers, int n, int further) {
    api.ReplyWithArray(ctx, n + further);
    for (int i = 0; i < n; i++) api.ReplyWithLongLong(ctx, integers[i]);
}

/* Replies in a shape other than SHIM_INTEGERS. */
static SHIM_RARE void reply_shape(RedisModuleCtx *ctx, const shim_call *call) {
    if (call->shape == SHIM_INTEGER) {
        api.ReplyWithLongLong(ctx, call->reply[0]);
    } else if (call->shape == SHIM_ITEMS) {
        shim_reply_items(ctx, call);
    } else {
        reply_integers(ctx, call->reply, call->replies, (int)call->clauses.len);
        for (int64_t i = 0; i < call->clauses.len; i++)
            reply_integers(ctx, call->clauses.at[i].reply, call->clauses.at[i].replies, 0);
    }
}

/* Names the keys of a call by its plan, and gets several of them ready to be opened. Returns 0 or an error. */
static SHIM_RARE int plan(RedisModuleCtx *ctx, const shim_command *command, shim_call *call, RedisModuleString **argv,
                          int index) {
    int error = goPlan(call, index);
    if (error) return error;
    const char *refused = shim_check_access(ctx, command, call, argv);
    if (refused == NULL && call->keys.len > 1) refused = shim_settle(ctx, command, call, argv);
    if (refused == NULL) return 0;
    memcpy(call->error, refused, strlen(refused) + 1);
    return SHIM_INTERNAL; /* the reply is call.error, so any error code will do */
}

/* Opens the keys and loads what they hold. */
static void load(RedisModuleCtx *ctx, const shim_command *command, shim_call *call, RedisModuleString **argv,
                 shim_entry (*entries)[SHIM_STACK_ENTRIES]) {
    shim_key *end = call->keys.at + call->keys.len;
    for (shim_key *key = call->keys.at; key < end; key++, entries++) {
        shim_open_key(ctx, command, key, argv[key->word + 1], *entries, call->keys.len > 1);
        if (key->wants == SHIM_HASH || (key->wants == SHIM_ANY && key->kind == SHIM_HASH))
            shim_load_cells(call, key);
    }
}

/* Puts the keys into the order in which they change. To make a key sends the event new, so the others
 * come first: another module that hears the event finds them as this call leaves them. */
static void put_order(const shim_call *call, shim_key **order) {
    for (int made = 0; made < 2; made++) {
        for (int64_t k = 0; k < call->keys.len; k++) {
            shim_key *key = &call->keys.at[k];
            int is_made = key->kind == SHIM_ABSENT || (key->becomes == SHIM_BECOMES_HASH && key->kind != SHIM_HASH);
            if (is_made == made) *order++ = key;
        }
    }
}

/* Whether the server may send an event inside of a function that changes the key: then the key is made,
 * deleted or overwritten. */
static int may_send(const shim_key *key) {
    switch (key->becomes) {
    case SHIM_BECOMES_UNCHANGED: return 0;
    case SHIM_BECOMES_HASH: return key->kind != SHIM_HASH;
    case SHIM_BECOMES_ZSET: return key->kind != SHIM_ZSET || !key->add_prefix; /* it may become empty */
    default: return 1;
    }
}

/* Does what Go said to several keys, and gives their order. No other one is open while one may send an event. */
static SHIM_RARE void apply_several(RedisModuleCtx *ctx, const shim_command *command, shim_call *call, shim_key **order) {
    put_order(call, order);
    if (!command->writes) return;
    int sends = 0;
    for (int64_t k = 0; k < call->keys.len; k++) sends |= may_send(order[k]);
    for (int64_t k = 0; sends && k < call->keys.len; k++) shim_close_key(order[k]);
    for (int64_t k = 0; k < call->keys.len; k++) {
        shim_apply(ctx, command, call, order[k]);
        if (sends) shim_close_key(order[k]);
    }
}

/* Does what Go said, replies, and closes the keys. The keys are closed before the events are
 * sent: any listener may change the keys. */
static void finish(RedisModuleCtx *ctx, shim_command *command, shim_call *call, int error) {
    shim_key *order[SHIM_CLAUSES];
    order[0] = call->keys.at;
    if (error) {
        command->errors++;
        reply_error(ctx, call, error);
    } else {
        command->outcomes[call->outcome]++;
        if (call->keys.len > 1) {
            apply_several(ctx, command, call, order);
        } else if (command->writes) {
            shim_apply(ctx, command, call, order[0]); /* a command without a key does not write */
        }
        if (call->shape == SHIM_INTEGERS) {
            reply_integers(ctx, call->reply, call->replies, 0);
        } else {
            reply_shape(ctx, call);
        }
    }
    shim_key *end = call->keys.at + call->keys.len;
    for (shim_key *key = call->keys.at; key < end; key++) {
        if (key->wants != SHIM_HASH) shim_free_entries(key);
        api.CloseKey(key->handle); /* unless it is closed */
    }
    for (int64_t k = 0; !error && k < call->keys.len; k++) {
        if (order[k]->events) shim_notify(ctx, order[k]);
    }
}

/* Frees what few calls need: memory for many cells, items or words. */
static SHIM_RARE void free_memory(shim_call *call, shim_text *owned_args) {
    if (call->cells.cap > SHIM_CLAUSES) api.Free(call->cells.at);
    if (call->items.at != NULL) shim_free_items(call);
    if (owned_args != NULL) api.Free(owned_args);
}

/* Runs a call. It is not inlined, so that the record is near a pointer: that makes shorter code. */
static __attribute__((noinline)) void run(room *r, RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                          shim_command *command, int index) {
    shim_call *call = &r->call;
    start(r, ctx);
    call->command = command;
    shim_text *owned_args = put_args(call, r->args, argv, argc);

    int error = 0;
    if (command->plans) {
        error = plan(ctx, command, call, argv, index);
    } else {
        call->keys.len = !command->no_key;
        r->keys[0].word = 0;
        r->keys[0].wants = command->state;
        r->keys[0].asked = command->state == SHIM_HASH || command->state == SHIM_ANY;
    }
    if (error) {
        call->keys.len = 0; /* no key is open */
    } else {
        load(ctx, command, call, argv, r->entries);
        call->now_us = shim_wall_us();
        if (shim_top_keys > 0) call->db = api.GetSelectedDb(ctx);
        error = goCall(call, index);
    }
    finish(ctx, command, call, error);
    if (call->cells.cap > SHIM_CLAUSES || call->items.at != NULL || owned_args != NULL) free_memory(call, owned_args);
}

/* Whether the call is answered here and not run: the server asks for its keys, or this is a forked child, where Go must
 * not run. If the server asks for the keys there, it hears of none. */
static SHIM_RARE int is_answered(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int index) {
    const shim_command *command = &shim_loaded->commands[index];
    int asks = command->plans && !command->one_key && api.IsKeysPositionRequest(ctx);
    if (asks && !shim_forked) name_keys(ctx, argv, argc, index);
    if (!asks && shim_forked) api.ReplyWithError(ctx, shim_loaded->errors[SHIM_IN_CHILD]);
    return asks || shim_forked;
}

static int shim_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int index) {
    shim_command *command = &shim_loaded->commands[index];
    if ((shim_forked || command->plans) && is_answered(ctx, argv, argc, index)) return API_OK;
    shim_has_run = 1;
    if (argc < command->min_arity || (command->max_arity && argc > command->max_arity)) {
        command->errors++;
        return api.ReplyWithError(ctx, command->wrong_arity);
    }
    room r;
    run(&r, ctx, argv, argc, command, index);
    return API_OK;
}

#define TRAMPOLINE(n)                                                             \
    static int run_##n(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) { \
        return shim_run(ctx, argv, argc, n);                                      \
    }
#define ALL_TRAMPOLINES(X)                                                                    \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)     \
    X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
ALL_TRAMPOLINES(TRAMPOLINE)
#define TRAMPOLINE_NAME(n) run_##n,
const RedisModuleCmdFunc shim_trampolines[SHIM_MAX_COMMANDS] = {ALL_TRAMPOLINES(TRAMPOLINE_NAME)};
