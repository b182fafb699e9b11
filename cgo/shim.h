/* What C and Go share: one record per call, one per command.
 *
 * Flow of a call, all on the server's main thread:
 *
 *   1. shim_run (C) opens the keys and reads what they hold into a shim_call.
 *   2. goCall (Go) decides: it reads the record and writes the reply and the wanted
 *      changes into it. It calls nothing and keeps nothing.
 *   3. shim_run applies the changes, replicates them, replies, closes the keys.
 *
 * The record and all that it points to live on the C stack or in memory that
 * shim_run frees before it returns, so a call may run inside another (a keyspace
 * event of ours may make another module call us). Go never stores a pointer in it.
 *
 * The three records are laid out as the Go structs of package commands; bridge.go
 * checks that at compile time. */
#ifndef GOTHROTTLE_SHIM_H
#define GOTHROTTLE_SHIM_H

#include "api.h"

#define SHIM_FIELDS 4  /* commands.MaxFields */
#define SHIM_CELLS 128 /* the most cells that a hash can have */
#define SHIM_ADOPTED_LEN 19 /* commands.AdoptedLen: the length of redis-cell's strings */

/* A Go string over borrowed memory. */
typedef struct shim_text {
    const char *bytes;
    size_t len;
} shim_text;

enum { SHIM_ABSENT, SHIM_STRING, SHIM_HASH, SHIM_ZSET, SHIM_OTHER }; /* commands.Kind */

typedef struct shim_key {
    int32_t kind;      /* C writes */
    int64_t length;    /* C writes */
    shim_text text;    /* C writes; the server's memory, valid until the key changes */
    int32_t remove;    /* Go writes */
    int64_t expire_from, expire_to; /* Go writes */
    RedisModuleKey *handle;  /* C's own: opened and closed by shim_run, NULL if absent and read-only */
    RedisModuleString *name; /* C's own: borrowed from argv */
} shim_key;

typedef struct shim_cell {
    int32_t key, index;      /* C writes */
    uint32_t found, bad;     /* C writes */
    uint32_t set, unset;     /* Go writes */
    int64_t value[SHIM_FIELDS]; /* C writes what it found, Go what is to be */
} shim_cell;

typedef struct shim_call {
    struct { shim_text *at; int64_t len, cap; } args;  /* C writes; the server's memory */
    struct { shim_key *at; int64_t len, cap; } keys;   /* C writes */
    struct { shim_cell *at; int64_t len, cap; } cells; /* C writes */
    int64_t now_us;   /* C writes the wall clock, Go the time it decided by */
    int32_t limited;  /* Go writes */
    int32_t replies;  /* Go writes */
    int64_t reply[6]; /* Go writes */
} shim_call;

/* One command. Made once by goLoad, of malloc'ed memory that lives as long as the
 * process; C only writes the counters. */
typedef struct shim_command {
    const char *name, *flags;
    int32_t max_arity; /* 0: no bound */
    int32_t min_arity;
    int32_t writes; /* 0: keys are opened for reading only */
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
    const char *fields[SHIM_FIELDS]; /* the names of a cell's fields */
} shim_module;

/* A monotonic clock in microseconds; the fake host puts its own here. */
extern int64_t (*shim_monotonic_us)(void);

int64_t shim_call_monotonic_us(void);           /* for Go, which cannot call through a pointer */
void shim_log(const char *level, const char *text);

/* What the server looks up. */
int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int RedisModule_OnUnload(RedisModuleCtx *ctx);

/* One trampoline per command: the server does not tell a handler which command it
 * runs, and the name in argv[0] may have been changed by rename-command. */
enum { SHIM_MAX_COMMANDS = 16 };
extern const RedisModuleCmdFunc shim_trampolines[SHIM_MAX_COMMANDS];

/* load.c fills these in, before the first command can run. */
extern const shim_module *shim_loaded;
extern RedisModuleString *shim_fields[SHIM_CELLS][SHIM_FIELDS]; /* kept for the process's life */
extern int64_t shim_clock_last_us; /* the time of the latest call, for INFO */
int64_t shim_wall_us(void);

#endif
