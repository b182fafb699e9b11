/* What C and Go share: one record per call, one per command.
 *
 * Flow of a call, all on the server's main thread:
 *
 *   1. run (call.c) fills a shim_call, the record, with the words. If a call may have several
 *      keys, goPlan (Go) names the keys in the record. Otherwise the first word is the key.
 *   2. run opens the keys and reads what they hold into the record (key.c, and hash.c,
 *      zset.c, string.c by what a key holds). Several keys are open at the same time only while the
 *      server sends no event.
 *   3. goCall (Go) decides: it reads the record, and writes the reply and what becomes of
 *      each key into it. Which entries of a sorted set matter depends on the words, so Go
 *      asks for them through the shim_zset functions, which only read.
 *   4. run does what Go said, replicates it, replies, closes the keys and sends the events. Of
 *      several keys, only the one that changes is open.
 *
 * Lifetimes: the record and its arrays live on the stack of run, or in memory that run frees
 * before it returns. The words belong to the server, which keeps them until run returns. Each call
 * has a record of its own, so a call may run inside another call: a keyspace event of ours may
 * make another module call us. Go stores no pointer to the record.
 *
 * The structs are laid out as the Go structs of package commands; layout.go checks that at
 * compile time. "C writes" means before goCall, "Go writes" means in goCall or goPlan. */
#ifndef GOTHROTTLE_SHIM_H
#define GOTHROTTLE_SHIM_H

#include "api.h"

#define SHIM_FIELDS 5         /* commands.MaxFields */
#define SHIM_LOCK 4           /* the field of a lockout, after the other fields of a cell */
#define SHIM_CELLS 32         /* commands.MaxCells */
#define SHIM_CLAUSES 32       /* commands.MaxClauses; also bounds the keys of a call */
#define SHIM_ADOPTED_LEN 19   /* commands.AdoptedLen: the length of redis-cell's strings */
#define SHIM_MIN_QUOTA_LEN 21 /* commands.MinQuotaLen, MaxQuotaLen: the lengths of our strings */
#define SHIM_MAX_QUOTA_LEN 36
#define SHIM_MAX_MEMBER 513   /* commands.MaxMemberLen: the length of our longest member */
#define SHIM_MAX_TOP_KEYS 10000    /* commands.MaxTopKeys */
#define SHIM_ERROR_TEXT 192   /* commands.MaxErrorText */
#define SHIM_STACK_ENTRIES 8  /* the first entries of a key are on the stack of run */
#define SHIM_INTERNAL 1       /* commands.ErrInternal */
#define SHIM_IN_CHILD 2       /* commands.ErrForked */

/* Code that few calls run, kept apart from the code of all calls, which hardly fits into the processor's cache. */
#define SHIM_RARE __attribute__((cold, noinline))

/* A Go string over borrowed memory. */
typedef struct shim_text {
    const char *bytes;
    size_t len;
} shim_text;

/* commands.Kind: the server's numbers. Any other number is a kind that no limiter has. */
enum { SHIM_ABSENT = TYPE_EMPTY, SHIM_STRING = TYPE_STRING, SHIM_HASH = TYPE_HASH, SHIM_ZSET = TYPE_ZSET, SHIM_ANY = 255 };
/* commands.Becomes: after the first one, the kinds plus 1. */
enum { SHIM_BECOMES_UNCHANGED, SHIM_BECOMES_ABSENT, SHIM_BECOMES_STRING, SHIM_BECOMES_HASH = 4, SHIM_BECOMES_ZSET = 6 };
enum { SHIM_INTEGERS, SHIM_INTEGER, SHIM_NESTED, SHIM_ITEMS };  /* commands.Shape */
enum { SHIM_ITEM_MAP, SHIM_ITEM_ARRAY, SHIM_ITEM_INTEGER, SHIM_ITEM_TEXT, SHIM_ITEM_NULL }; /* commands.ItemKind */
enum { SHIM_COUNT_OTHER, SHIM_COUNT_ADMITTED, SHIM_COUNT_LIMITED, SHIM_COUNT_SHADOWED, SHIM_OUTCOMES }; /* commands.Outcome */

typedef struct shim_entry {
    int64_t time_us;           /* C writes */
    shim_text member;          /* C writes: the bytes of string */
    int32_t bad;               /* C writes: the score isn't a number of us or slots, see zset.c */
    int32_t drop;              /* Go writes 1: remove the entry. C writes 2: add it, see shim_zset_put */
    RedisModuleString *string; /* C's own: freed by shim_release_entries, or at the end of the call */
} shim_entry;

typedef struct shim_key {
    int32_t word, wants, asked; /* C writes, or Go in goPlan */
    int32_t kind;               /* C writes this and all fields before becomes */
    int64_t length;             /* the number of elements or bytes */
    int64_t expires_at;         /* ms, -1 if never; only if wants is SHIM_ANY */
    shim_text text;             /* a string that may be ours: the server's memory, valid until the key changes; or new_text */
    int32_t first_cell, num_cells;
    struct { shim_entry *at; int64_t len, cap; } entries; /* C writes, on Go's asking */
    int32_t becomes;            /* Go writes this and all fields before slack_base */
    int32_t new_len;
    int32_t add_prefix, add_word;
    int64_t add_time_us;
    int64_t expire_from, expire_to; /* ms */
    int64_t slack_base;             /* Go's own */
    uint64_t checksum;              /* Go's own, of goPlan */
    RedisModuleKey *handle;     /* C's own: shim_open_key opens it, run closes it; NULL if it is closed */
    RedisModuleString *name;    /* C's own: borrowed from argv */
    int32_t events;             /* C's own: the SHIM_EVENT_ bits that shim_notify sends */
    int32_t unread;             /* C's own: how many fields of a hash are still to be read */
    char new_text[48];          /* Go writes; C keeps a copy of the text here if wants is SHIM_ANY */
} shim_key;

typedef struct shim_cell {
    int32_t index;              /* C writes */
    uint32_t found, bad;        /* C writes; bit i is of field i */
    uint32_t set, unset;        /* Go writes; bit i is of field i */
    int32_t unused;
    int64_t own[5];             /* Go's own */
    long long value[SHIM_FIELDS]; /* C writes what it found, Go writes what is to be */
} shim_cell;

typedef struct shim_clause {
    int32_t key, replies;      /* Go writes */
    int64_t reply[6];          /* Go writes */
    int64_t own[5];            /* Go's own: where its words are */
} shim_clause;

/* A part of a reply of the shape SHIM_ITEMS. */
typedef struct shim_item {
    int32_t kind;
    int64_t n;
    RedisModuleString *text; /* of SHIM_ITEM_TEXT: ours to free */
} shim_item;

typedef struct shim_call {
    struct { shim_text *at; int64_t len, cap; } args;       /* C writes; the bytes are the server's */
    struct { shim_key *at; int64_t len, cap; } keys;        /* C writes, or Go in goPlan */
    struct { shim_cell *at; int64_t len, cap; } cells;      /* C writes */
    struct { shim_clause *at; int64_t len, cap; } clauses;  /* Go writes */
    const void *scratch;    /* Go's own: its memory for this call; C writes 0 */
    int64_t now_us; /* C writes the wall clock, Go the time that it decided by */
    int32_t db;       /* C writes, if shim_top_keys is not 0 */
    int32_t err_word; /* Go's own, as the next two */
    int16_t err_clause;
    uint16_t allowed;
    int32_t outcome;  /* Go writes this and the next three */
    int32_t shape;
    int32_t replies;
    int64_t reply[6];
    /* Not part of commands.Call: */
    struct { shim_item *at; int64_t len, cap; } items; /* items.c writes, on Go's asking; run frees them */
    RedisModuleCtx *ctx;         /* C writes; for zset.c */
    const struct shim_command *command; /* C writes; for zset.c */
    char error[SHIM_ERROR_TEXT]; /* Go writes: the text of an error that names a word; "" if none does */
} shim_call;

/* One command. goLoad makes it once, of malloc'ed memory that is never freed. C writes the
 * counters, and OnLoad may clear only_if_free. */
typedef struct shim_command {
    const char *name, *flags;
    const char *info_name; /* the name in INFO's fields */
    const char *wrong_arity; /* the text of the error */
    int32_t max_arity;     /* 0: no bound */
    int32_t min_arity;
    int32_t writes;        /* 0: keys are opened for reading only */
    int32_t no_key;
    int32_t plans;         /* goPlan names the keys; 0: the first word is the only key */
    int32_t one_key;       /* goPlan names the first word only: the server need not ask for the keys */
    int32_t state;         /* the kind that the only key must have */
    int32_t only_if_free;  /* a taken name isn't an error */
    api_command_info info;
    int64_t outcomes[SHIM_OUTCOMES], errors; /* how many calls, by SHIM_COUNT_ */
} shim_command;

/* All commands, and what else Go knows at load. Like the commands, its memory is never freed. */
typedef struct shim_module {
    const char *version;
    int32_t version_number;
    int32_t num_commands;
    shim_command *commands;
    const char *const *errors; /* the texts, by commands.ErrorCode */
} shim_module;

/* funnel.Clock. Only goCall changes it; INFO reads it. */
typedef struct shim_clock_state {
    int64_t last_us, base_us, mono_us, behind;
} shim_clock_state;
extern shim_clock_state shim_clock;

extern int64_t shim_panics; /* how many panics the barriers around Go have caught */

/* process.c: the clocks, in microseconds. The fake host puts a monotonic clock of its own here. */
int64_t shim_wall_us(void); /* since the Unix epoch */
extern int64_t (*shim_monotonic_us)(void);

/* For Go, which cannot call through a pointer or a variadic function. shim_log keeps neither text:
 * the caller frees both. */
int64_t shim_call_monotonic_us(void);
void shim_log(const char *level, const char *text);

/* The symbols that the server looks up: the only ones of ours that the shared object exports. */
#pragma GCC visibility push(default)
int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int RedisModule_OnUnload(RedisModuleCtx *ctx);
#pragma GCC visibility pop

/* One trampoline per command: a handler does not learn from the server which command it runs, and
 * the name in argv[0] may have been changed by rename-command. */
enum { SHIM_MAX_COMMANDS = 24 };
extern const RedisModuleCmdFunc shim_trampolines[SHIM_MAX_COMMANDS];
extern int shim_has_run; /* a command of ours ran: the module can no longer be unloaded */

/* load.c fills these in, before the first command can run. */
extern const shim_module *shim_loaded;
extern int shim_server_asks; /* the server asks a command of several keys for its keys: see load.c */
extern RedisModuleString *shim_fields[SHIM_CELLS][SHIM_FIELDS]; /* names of fields; never freed */

/* process.c: OnLoad calls the first as soon as it begins, the second when nothing can fail any more. */
void shim_enter_process(void);
void shim_watch_handlers(RedisModuleCtx *ctx);
extern int shim_forked; /* this is a forked child: Go must not run */

/* config.c: registers the configurations, and sets them to the values that the server has for them. */
int shim_load_config(RedisModuleCtx *ctx);
extern long long shim_top_keys; /* how many keys GO.TOP counts */

/* commands.PolicyCounts. */
typedef struct shim_policy {
    char name[72];
    int64_t outcomes[SHIM_OUTCOMES], near;
} shim_policy;

/* load.c: INFO shows these counters from now on. The memory is Go's, which keeps it until the next call. Go must not
 * write the pointer itself: its collector would follow the old one into memory that is free. */
void shim_show_policies(const shim_policy *policies, int64_t n);

/* Sets the fields of a struct from first up to end to 0: 8 or 14 words, two at a time. gcc would make a loop or memset a rep
 * stos, which takes longer to start than to run. */
#define SHIM_CLEAR(at, first, end)                                                                    \
    do {                                                                                              \
        enum { words = (offsetof(__typeof__(*(at)), end) - offsetof(__typeof__(*(at)), first)) / 8 }; \
        _Static_assert(words == 8 || words == 14, "shim_clear knows no other number");                \
        shim_clear(&(at)->first, words);                                                              \
    } while (0)
static inline void shim_clear(void *at, int words) {
    typedef int64_t __attribute__((vector_size(16), aligned(8), may_alias)) pair;
    pair *p = at, zero = {0, 0};
    p[0] = p[1] = p[2] = p[3] = zero;
    if (words > 8) p[4] = p[5] = p[6] = zero;
}

/* base.c: moves a full array of *cap elements to memory of the server's allocator with more room, and
 * sets *cap. An array of up to on_stack elements is on the stack of run; the memory of a larger one is
 * freed. run frees the last memory. */
void *shim_grow(void *at, size_t size, int64_t *cap, int64_t on_stack);

/* key.c: opening keys.
 *
 * Another module may change any key whenever it hears an event. The server sends some events inside of
 * API functions: expired and keymiss in OpenKey, new in the first write to an absent key, and from 7.2
 * on a server event when a key is removed. A handle does not survive the removal of its key. So no
 * handle is open meanwhile but that of the key that the event is about. A command filter of another module
 * may change any key, too, before a command that Call runs: then no handle is open at all.
 *
 * shim_settle opens the keys of a call that has several, one at a time, until all those that are not absent
 * are there at once. To open these then sends no event: the time of a call does not change. The last one
 * stays open. A key that was absent once stays so for this call. Returns NULL, or the text of an error,
 * which is static: another module makes keys that have expired again and again. */
const char *shim_settle(RedisModuleCtx *ctx, const shim_command *command, shim_call *call, RedisModuleString **argv);

/* Opens a key, unless shim_settle left it open or found it absent, and reads what does not depend on the
 * words. entries has room for SHIM_STACK_ENTRIES. */
void shim_open_key(RedisModuleCtx *ctx, const shim_command *command, shim_key *key,
                   RedisModuleString *name, shim_entry *entries, int settled);
void shim_close_key(shim_key *key); /* base.c; unless it is closed */

/* Closes the keys of a call before Call runs a command, and opens them again, as they were loaded. Absent keys stay
 * closed: shim_apply opens them. If another module has changed the keys meanwhile, shim_reopen_keys returns 0, no key is
 * open, and the call must be an error, whose text is in the record. */
void shim_close_keys(shim_call *call);
int shim_reopen_keys(shim_call *call);

/* Opens a key again, to change it. Returns 0 if another module has changed it since it was loaded:
 * then the key is left alone, as if that module had come after this call. */
int shim_open_again(RedisModuleCtx *ctx, const shim_command *command, shim_key *key);

/* apply.c: does what Go said. Opens the key if it is closed. */
void shim_apply(RedisModuleCtx *ctx, const shim_command *command, shim_call *call, shim_key *key);

/* After the first write to a key: whether the key is there, of this kind. Another module may have moved a
 * new key away. To set the expiry of an absent key would stop the server, so then none is set. */
int shim_is_there(RedisModuleCtx *ctx, shim_key *key, int32_t kind);
static inline int shim_is_made(RedisModuleCtx *ctx, shim_key *key, int32_t kind) {
    return key->kind != SHIM_ABSENT || shim_is_there(ctx, key, kind);
}

void shim_notify(RedisModuleCtx *ctx, const shim_key *key);

/* access.c: checks the keys that the server does not see as the server checks those that it sees.
 * Returns NULL, or the text of an error, which is static. */
const char *shim_check_access(RedisModuleCtx *ctx, const shim_command *command, const shim_call *call,
                              RedisModuleString **argv);

/* The keyspace events of a key that are still to be sent, in their order. */
enum {
    SHIM_EVENT_DEL = 1 << 0,
    SHIM_EVENT_HSET = 1 << 1,
    SHIM_EVENT_HDEL = 1 << 2,
    SHIM_EVENT_SET = 1 << 3,
    SHIM_EVENT_ZADD = 1 << 4,
    SHIM_EVENT_ZREM = 1 << 5,
    SHIM_EVENT_EXPIRE = 1 << 6,
    SHIM_EVENT_EMPTIED = 1 << 7
};

/* Sets the expiry that Go asked for, unless the key's expiry is good enough, as in most calls.
 * Returns whether it set the expiry. Does not replicate. */
int shim_set_expiry(shim_key *key);

/* hash.c. shim_load_cells appends the cells of one key to those of the keys before it. If the array of SHIM_CLAUSES
 * cells is full, it moves to memory of the server's allocator. run frees that memory. */
void shim_load_cells(shim_call *call, shim_key *key);
void shim_apply_hash(RedisModuleCtx *ctx, shim_call *call, shim_key *key);

/* zset.c. What Go may ask of the sorted set at a key: see commands.Host. key is an index in
 * call->keys. The functions up to shim_free_entries only read. The server cannot enter Go again
 * meanwhile, except in the two that run commands: shim_zset_rank and shim_zset_count_after. These
 * return SHIM_CHANGED if shim_reopen_keys returned 0; Go must then ask for nothing else. */
enum { SHIM_CHANGED = -2 };
void shim_zset_newest(shim_call *call, int64_t key, int64_t most);
int shim_zset_first(shim_call *call, int64_t key, int64_t after_us);
void shim_zset_oldest(shim_call *call, int64_t key, int64_t after_us, int64_t up_to_us, int64_t most);
int shim_zset_rank(shim_call *call, int64_t key, int64_t rank);
int shim_zset_find(shim_call *call, int64_t key, int prefix, const char *bytes, size_t len);
int64_t shim_zset_count_after(shim_call *call, int64_t key, int64_t after_us);
void shim_zset_put(shim_call *call, int64_t key, int prefix, const char *bytes, size_t len, int64_t time_us);
void shim_release_entries(shim_call *call, int64_t key, int64_t keep);
void shim_free_entries(shim_key *key); /* all that these functions appended */
void shim_apply_zset(RedisModuleCtx *ctx, shim_call *call, shim_key *key);

/* items.c. Go gives a reply of the shape SHIM_ITEMS part by part; the text is copied. The parts are sent by
 * shim_reply_items: after Go has returned, so that a panic or an error in the middle leaves no half reply. */
void shim_put_item(shim_call *call, int32_t kind, int64_t n, const char *text, size_t len);
void shim_reply_items(RedisModuleCtx *ctx, const shim_call *call);
void shim_free_items(shim_call *call);

/* string.c */
void shim_load_string(RedisModuleCtx *ctx, shim_key *key);
void shim_apply_string(RedisModuleCtx *ctx, shim_key *key);

#endif
