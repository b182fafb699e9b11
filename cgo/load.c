/* What happens once: OnLoad and OnUnload, the clocks, INFO. */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "_cgo_export.h"

const shim_module *shim_loaded;
RedisModuleString *shim_fields[SHIM_CELLS][SHIM_FIELDS];
int64_t shim_clock_last_us;

static int64_t read_clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The server's own time of the running command where it tells it (1.7 ns), else the
 * system's (20 ns). */
int64_t shim_wall_us(void) {
    return api.CachedMicroseconds != NULL ? api.CachedMicroseconds() : read_clock_us(CLOCK_REALTIME);
}

static int64_t monotonic_us(void) {
    return read_clock_us(CLOCK_MONOTONIC);
}
int64_t (*shim_monotonic_us)(void) = monotonic_us;

int64_t shim_call_monotonic_us(void) {
    return shim_monotonic_us();
}

void shim_log(const char *level, const char *text) {
    api.Log(NULL, level, "%s", text);
}

/* How late the threads of the Go runtime may wake from a timed sleep, in ns.
 *
 * The runtime's monitor thread takes processors away from goroutines that have run for
 * over 10 ms without being scheduled. To it, the server's main thread is one for ever: under
 * load it woke every 20 us, took the processor, and woke a further thread, which cost the
 * main thread 3,000 preemptions a second. Nothing of ours waits for the monitor. With this
 * slack it wakes 120 times a second under full load (1,000 times if the load comes in
 * bursts, since the kernel lets timers expire together), and the p99 of "GO.THROTTLE
 * denied" in make bench fell from 1.05 ms to 0.65 ms, that of SET.
 *
 * A thread inherits the slack of the one that creates it: it is set before the runtime's
 * constructor, which has no priority, makes its first thread, and OnLoad puts it back. */
#define GO_TIMER_SLACK_NS 10000000ul
static unsigned long timer_slack_ns; /* of the server's main thread; 0: nothing to put back */

__attribute__((constructor(101))) static void before_go(void) {
    long slack = syscall(SYS_prctl, PR_GET_TIMERSLACK); /* prctl() would cut it to an int */
    if (slack <= 0 || (unsigned long)slack >= GO_TIMER_SLACK_NS) return;
    timer_slack_ns = (unsigned long)slack;
    prctl(PR_SET_TIMERSLACK, GO_TIMER_SLACK_NS);
}

static void restore_timer_slack(void) {
    if (timer_slack_ns > 0) prctl(PR_SET_TIMERSLACK, timer_slack_ns);
}

/* INFO gothrottle. In C over C counters, and it takes no lock and allocates nothing of
 * ours: the server also calls it in crash reports and Go cannot be entered there. */
static void info(RedisModuleInfoCtx *ctx, int for_crash_report) {
    (void)for_crash_report;
    if (api.InfoAddSection(ctx, "") != API_OK) return;
    int64_t lead = shim_clock_last_us - shim_wall_us();
    api.InfoAddFieldCString(ctx, "version", shim_loaded->version);
    api.InfoAddFieldLongLong(ctx, "clock_lead_us", lead > 0 ? lead : 0);
    for (int i = 0; i < shim_loaded->num_commands; i++) {
        const shim_command *c = &shim_loaded->commands[i];
        api.InfoBeginDictField(ctx, c->name);
        api.InfoAddFieldLongLong(ctx, "admitted", c->admitted);
        api.InfoAddFieldLongLong(ctx, "limited", c->limited);
        api.InfoAddFieldLongLong(ctx, "errors", c->errors);
        api.InfoEndDictField(ctx);
    }
}

/* Whether redis-cell's name is registered: if it is free, always, never. */
enum { CELL_IF_FREE, CELL_YES, CELL_NO };

/* Reads the load arguments; logs and returns API_ERR for one that is not known. */
static int parse_load_args(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int *cell) {
    *cell = CELL_IF_FREE;
    for (int i = 0; i < argc; i += 2) {
        const char *name = api.StringPtrLen(argv[i], NULL);
        if (strcasecmp(name, "cl-throttle") != 0) {
            api.Log(ctx, "warning", "gothrottle not loaded: unknown argument '%s'", name);
            return API_ERR;
        }
        const char *value = i + 1 < argc ? api.StringPtrLen(argv[i + 1], NULL) : "";
        if (strcasecmp(value, "yes") == 0) {
            *cell = CELL_YES;
        } else if (strcasecmp(value, "no") == 0) {
            *cell = CELL_NO;
        } else {
            api.Log(ctx, "warning", "gothrottle not loaded: cl-throttle must be yes or no, not '%s'",
                    value);
            return API_ERR;
        }
    }
    return API_OK;
}

/* An effect that cannot be replicated would let replicas drift in silence. */
static int check_effect_commands(RedisModuleCtx *ctx) {
    static const char *const effects[] = {"HSET", "HDEL", "ZADD", "ZREM", "SET", "DEL", "PEXPIREAT"};
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        RedisModuleString *name = api.CreateString(NULL, effects[i], strlen(effects[i]));
        int num_keys;
        errno = 0;
        int *keys = api.GetCommandKeys(ctx, &name, 1, &num_keys);
        int absent = keys == NULL && errno == ENOENT;
        api.FreeString(NULL, name);
        if (keys != NULL) api.Free(keys);
        if (absent) {
            api.Log(ctx, "warning",
                    "gothrottle not loaded: it replicates its effects as %s, and this server has "
                    "no command of that name (see rename-command)",
                    effects[i]);
            return API_ERR;
        }
    }
    return API_OK;
}

/* The names of the fields of every cell that a hash can have: see commands.Cell. */
static void make_field_names(void) {
    if (shim_fields[0][0] != NULL) return; /* an earlier OnLoad made them */
    for (int cell = 0; cell < SHIM_CELLS; cell++) {
        for (int i = 0; i < SHIM_FIELDS; i++)
            shim_fields[cell][i] = api.CreateStringFromLongLong(NULL, SHIM_FIELDS * cell + i);
    }
}

static const char acl_category[] = "throttle";

static int register_command(RedisModuleCtx *ctx, const shim_command *c, int index, int has_category) {
    if (api.CreateCommand(ctx, c->name, shim_trampolines[index], c->flags, 1, 1, 1) != API_OK) {
        if (c->only_if_free) {
            api.Log(ctx, "notice", "%s is taken, probably by redis-cell: left as it is", c->name);
            return API_OK;
        }
        api.Log(ctx, "warning", "gothrottle not loaded: the command name %s is taken", c->name);
        return API_ERR;
    }
    RedisModuleCommand *command = api.GetCommand(ctx, c->name);
    if (api.SetCommandInfo(command, &c->info) != API_OK) {
        api.Log(ctx, "warning", "gothrottle not loaded: the server refused the description of %s",
                c->name);
        return API_ERR;
    }
    if (api.SetCommandACLCategories != NULL) {
        char categories[64];
        snprintf(categories, sizeof categories, "%s %s%s%s", c->writes ? "write" : "read",
                 strstr(c->flags, "fast") ? "fast" : "slow",
                 has_category ? " " : "", has_category ? acl_category : "");
        if (api.SetCommandACLCategories(command, categories) != API_OK)
            api.Log(ctx, "warning", "no ACL categories for %s: grant it by name", c->name);
    }
    return API_OK;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    restore_timer_slack();
    if (api_resolve(ctx) != API_OK) return API_ERR;
    shim_module *module = goLoad();
    shim_loaded = module;
    api.SetModuleAttribs(ctx, "gothrottle", module->version_number, API_VERSION);
    int cell;
    if (parse_load_args(ctx, argv, argc, &cell) != API_OK) return API_ERR;
    if (check_effect_commands(ctx) != API_OK) return API_ERR;

    /* WATCH must not see denied calls: we signal what we changed. */
    int options = OPTION_NO_IMPLICIT_SIGNAL_MODIFIED | OPTION_HANDLE_REPL_ASYNC_LOAD;
    if (api_has(ctx, "ValkeyModule_SetModuleOptions")) {
        /* Replicate then does not look its command up, as check_effect_commands has done for
         * all: 9 % of "GO.THROTTLE" in make bench on Valkey 9.1. */
        options |= OPTION_SKIP_COMMAND_VALIDATION | OPTION_HANDLE_ATOMIC_SLOT_MIGRATION;
    }
    api.SetModuleOptions(ctx, options);

    make_field_names();
    int has_category = api.AddACLCategory != NULL && api.SetCommandACLCategories != NULL &&
                       api.AddACLCategory(ctx, acl_category) == API_OK;
    for (int i = 0; i < module->num_commands; i++) {
        shim_command *c = &module->commands[i];
        if (c->only_if_free) {
            if (cell == CELL_NO) continue;
            if (cell == CELL_YES) c->only_if_free = 0;
        }
        if (register_command(ctx, c, i, has_category) != API_OK) return API_ERR;
    }
    return api.RegisterInfoFunc(ctx, info);
}

int RedisModule_OnUnload(RedisModuleCtx *ctx) {
    api.Log(ctx, "warning",
            "gothrottle cannot be unloaded: a Go runtime stays in its process. Restart the server to "
            "upgrade or remove it");
    return API_ERR;
}
