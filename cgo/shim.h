/* What C and Go share: one record per call, one per command.
 *
 * Flow of a call, all on the server's main thread:
 *
 *   1. shim_run (C) opens the keys and reads what they hold into a shim_call.
 *   2. goCall (Go) decides: it reads the record and writes the reply and the wanted
 *      changes into it. It keeps nothing. What of a sorted set matters depends on the
 *      words, so Go asks for it through the shim_zset functions, which only read.
 *   3. shim_run applies the changes, replicates them, replies, closes the keys.
 *
 * The record and all that it points to live on the C stack or in memory that
 * shim_run frees before it returns, so a call may run inside another (a keyspace
 * event of ours may make another module call us). Go never stores a pointer in it.
 *
 * The records are laid out as the Go structs of package commands; bridge.go
 * checks that at compile time. */
#ifndef GOTHROTTLE_SHIM_H
#define GOTHROTTLE_SHIM_H

#include "api.h"

#define SHIM_FIELDS 4  /* commands.MaxFields */
#define SHIM_CELLS 128 /* the most cells that a hash can have, and the most keys of a call */
#define SHIM_ADOPTED_LEN 19 /* commands.AdoptedLen: the length of redis-cell's strings */
#define SHIM_STACK_ENTRIES 8 /* a call's first entries are on shim_run's stack */
#define SHIM_WRONG_ARITY 2   /* commands.ErrArity: the server has the text */

/* A Go string over borrowed memory. */
typedef struct shim_text {
    const char *bytes;
    size_t len;
} shim_text;

enum { SHIM_ABSENT, SHIM_STRING, SHIM_HASH, SHIM_ZSET, SHIM_OTHER }; /* commands.Kind */
enum { SHIM_INTEGERS, SHIM_INTEGER, SHIM_NESTED };                   /* commands.Shape */

typedef struct shim_key {
    int32_t kind;                   /* C writes */
    int32_t events;                 /* C's own: those that are owed */
    int64_t length;                 /* C writes; the number of elements or bytes */
    shim_text text;                 /* C writes; the server's memory, valid until the key changes */
    int32_t remove;                 /* Go writes */
    int32_t fields;                 /* C's own: how many were read */
    int64_t expire_from, expire_to; /* Go writes */
    int64_t window;                 /* Go's own */
    RedisModuleKey *handle;         /* C's own: opened and closed by shim_run; NULL if there is none */
    RedisModuleString *name;        /* C's own: borrowed from argv */
} shim_key;

typedef struct shim_cell {
    int32_t key, index;         /* C writes */
    uint32_t found, bad;        /* C writes */
    uint32_t set, unset;        /* Go writes */
    int64_t value[SHIM_FIELDS]; /* C writes what it found, Go what is to be */
    int64_t reply[5];           /* Go writes; of a nested reply */
    int64_t own[6];             /* Go's own */
} shim_cell;

typedef struct shim_entry {
    int64_t time;             /* C writes */
    shim_text member;         /* C writes; the bytes of string */
    int32_t bad;              /* C writes: the score is no time: see zset.c */
    int32_t drop;             /* Go writes: remove it */
    RedisModuleString *string; /* C's own: freed at the end of the call */
} shim_entry;

typedef struct shim_call {
    struct { shim_text *at; int64_t len, cap; } args;     /* C writes; the server's memory */
    struct { shim_key *at; int64_t len, cap; } keys;      /* C writes */
    struct { shim_cell *at; int64_t len, cap; } cells;    /* C writes */
    struct { shim_entry *at; int64_t len, cap; } entries; /* C writes, on Go's asking */
    int64_t now_us;     /* C writes the wall clock, Go the time it decided by */
    int32_t asked;      /* C writes: how many of the cells the words ask for */
    int32_t limited;    /* Go writes, as all that follows */
    int32_t shape;
    int32_t replies;
    int64_t reply[6];
    int32_t add_prefix, add_arg; /* see commands.Call */
    int64_t add_time;
    int32_t set_len;
    char set[64];
} shim_call;

/* One command. Made once by goLoad, of malloc'ed memory that lives as long as the
 * process; C only writes the counters. */
typedef struct shim_command {
    const char *name, *flags;
    int32_t max_arity; /* 0: no bound */
    int32_t min_arity;
    int32_t writes;   /* 0: keys are opened for reading only */
    int32_t words_per_key; /* 0: the first word is the key; else it is the number of keys that
                            * follow, and so many words per key come after them */
    int32_t state;    /* what the keys hold, as a kind: what is loaded before Go decides */
    int32_t only_if_free; /* a taken name is no error */
    api_command_info info;
    int64_t admitted, limited, errors;
} shim_command;

/* All commands, and what else Go knows at load. */
typedef struct shim_module {
    const char *version;
    int32_t version_number;
    int32_t num_commands;
    shim_command *commands;
    const char *const *errors; /* by commands.Error */
} shim_module;

/* A monotonic clock in microseconds; the fake host puts its own here. */
extern int64_t (*shim_monotonic_us)(void);

/* For Go, which cannot call through a pointer. */
int64_t shim_call_monotonic_us(void);
void shim_log(const char *level, const char *text);

/* What Go may ask of the sorted set at the call's first key: see commands.Host. They
 * only read, so nothing can make the server enter Go again meanwhile. */
int shim_zset_first(shim_call *call, int64_t above, int64_t n);
int shim_zset_last(shim_call *call, int64_t n);
void shim_zset_head(shim_call *call, int64_t above, int64_t upto, int64_t most);
int shim_zset_find(shim_call *call, int prefix, const char *bytes, size_t len);
int64_t shim_zset_count(shim_call *call, int64_t upto);
void shim_release_entries(shim_call *call, int64_t keep);

/* What the server looks up. */
int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int RedisModule_OnUnload(RedisModuleCtx *ctx);

/* One trampoline per command: the server does not tell a handler which command it
 * runs, and the name in argv[0] may have been changed by rename-command. */
enum { SHIM_MAX_COMMANDS = 16 };
extern const RedisModuleCmdFunc shim_trampolines[SHIM_MAX_COMMANDS];

/* state.c: what a key holds, into the record and back. */
void shim_load_key(RedisModuleCtx *ctx, const shim_command *command, shim_key *key,
                   RedisModuleString *name);
void shim_load_cell(shim_key *key, shim_cell *cell, int32_t key_index, int32_t index);
void shim_load_rest(shim_key *key, shim_cell *cell);
int shim_apply(RedisModuleCtx *ctx, shim_call *call, int32_t key_index);
void shim_notify(RedisModuleCtx *ctx, RedisModuleString *name, int events);

/* zset.c. */
void shim_free_entries(shim_call *call); /* all that the shim_zset functions took */
RedisModuleString *shim_member(int prefix, const char *bytes, size_t len); /* the caller frees it */

/* load.c fills these in, before the first command can run. */
extern const shim_module *shim_loaded;
extern RedisModuleString *shim_fields[SHIM_CELLS][SHIM_FIELDS]; /* kept for the process's life */
extern int64_t shim_clock_last_us; /* the time of the latest call, for INFO */
int64_t shim_wall_us(void);

#endif
