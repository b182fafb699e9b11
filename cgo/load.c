/* OnLoad, OnUnload and INFO. */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "_cgo_export.h"

/* By how much the module's clock is ahead of the server's: the time that funnel.Clock would return
 * now, minus the wall clock. It is 0 unless the server's clock was set back. */
static int64_t clock_lead_us(void) {
    int64_t wall = shim_wall_us(), now = shim_clock.last_us;
    if (!shim_clock.behind && wall >= now) return 0;
    if (shim_clock.behind) {
        int64_t slow = shim_clock.base_us + (shim_monotonic_us() - shim_clock.mono_us) / 2;
        if (slow > now) now = slow;
    }
    return now > wall ? now - wall : 0;
}

static const shim_policy *volatile policies;
static volatile int64_t num_policies;

/* A crash report may read at any time. */
void shim_show_policies(const shim_policy *of_go, int64_t n) {
    num_policies = 0;
    policies = of_go;
    num_policies = n;
}

static void info_field(RedisModuleInfoCtx *ctx, const char *prefix, const char *name, const char *counter, int64_t n) {
    char field[96]; /* the name of a policy has 64 bytes */
    snprintf(field, sizeof field, "%s%s_%s", prefix, name, counter);
    api.InfoAddFieldLongLong(ctx, field, n);
}

static void info_outcomes(RedisModuleInfoCtx *ctx, const char *prefix, const char *name, const int64_t *n) {
    info_field(ctx, prefix, name, "admitted", n[SHIM_COUNT_ADMITTED]);
    info_field(ctx, prefix, name, "limited", n[SHIM_COUNT_LIMITED]);
    info_field(ctx, prefix, name, "shadowed", n[SHIM_COUNT_SHADOWED]);
}

/* INFO gothrottle. This function reads C counters only, takes no lock and allocates nothing: the
 * server also calls it in crash reports, where Go cannot be entered. */
static void info(RedisModuleInfoCtx *ctx, int for_crash_report) {
    (void)for_crash_report;
    if (api.InfoAddSection(ctx, "") != API_OK) return;
    api.InfoAddFieldCString(ctx, "version", shim_loaded->version);
    api.InfoAddFieldLongLong(ctx, "version_number", shim_loaded->version_number);
    api.InfoAddFieldLongLong(ctx, "clock_lead_us", clock_lead_us());
    api.InfoAddFieldLongLong(ctx, "panics", shim_panics);
    api.InfoAddFieldLongLong(ctx, "top_keys", shim_top_keys);
    for (int i = 0; i < shim_loaded->num_commands; i++) {
        const shim_command *c = &shim_loaded->commands[i];
        info_outcomes(ctx, "", c->info_name, c->outcomes);
        info_field(ctx, "", c->info_name, "other", c->outcomes[SHIM_COUNT_OTHER]);
        info_field(ctx, "", c->info_name, "errors", c->errors);
    }
    for (int64_t i = 0; i < num_policies; i++) {
        const shim_policy *p = &policies[i];
        info_outcomes(ctx, "policies_", p->name, p->outcomes);
        info_field(ctx, "policies_", p->name, "near", p->near);
    }
}

/* Whether CL.THROTTLE is registered: if the name is free, always, never. */
enum { CL_IF_FREE, CL_YES, CL_NO };

/* Reads the load arguments into cl_throttle. Logs a wrong argument and returns API_ERR. The module has no name yet,
 * so the server does not put it before these log lines: their text names the module. */
static int parse_load_args(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int *cl_throttle) {
    *cl_throttle = CL_IF_FREE;
    for (int i = 0; i < argc; i += 2) {
        const char *name = api.StringPtrLen(argv[i], NULL);
        if (strcasecmp(name, "cl-throttle") != 0) {
            api.Log(ctx, "warning", "gothrottle not loaded: unknown argument '%s'", name);
            return API_ERR;
        }
        const char *value = i + 1 < argc ? api.StringPtrLen(argv[i + 1], NULL) : "";
        int yes = strcasecmp(value, "yes") == 0;
        if (!yes && strcasecmp(value, "no") != 0) {
            api.Log(ctx, "warning", "gothrottle not loaded: %s must be yes or no, not '%s'", name, value);
            return API_ERR;
        }
        *cl_throttle = yes ? CL_YES : CL_NO;
    }
    return API_OK;
}

/* Refuses a server that lacks a command of ours: replicas would drift in silence if an effect could not be replicated.
 * The last three aren't effects: zset.c reads by ZCOUNT and ZRANGE, access.c by EXISTS. */
static int check_needed_commands(RedisModuleCtx *ctx) {
    static const char *const needed[] = {"HSET", "HDEL",      "ZADD",   "ZREM",   "SET",
                                         "DEL",  "PEXPIREAT", "ZCOUNT", "ZRANGE", "EXISTS"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        RedisModuleString *name = api.CreateString(NULL, needed[i], strlen(needed[i]));
        int num_keys;
        errno = 0;
        int *keys = api.GetCommandKeys(ctx, &name, 1, &num_keys);
        int absent = keys == NULL && errno == ENOENT;
        api.FreeString(NULL, name);
        if (keys != NULL) api.Free(keys);
        if (absent) {
            api.Log(ctx, "warning",
                    "gothrottle not loaded: it needs the command %s, and this server has no command "
                    "of that name (see rename-command)",
                    needed[i]);
            return API_ERR;
        }
    }
    return API_OK;
}

/* The names of the fields of every cell that a hash can have: see commands.Cell. */
static void make_field_names(void) {
    if (shim_fields[0][0] != NULL) return; /* an earlier OnLoad made them */
    for (int cell = 0; cell < SHIM_CELLS; cell++) {
        for (int i = 0; i < SHIM_LOCK; i++)
            shim_fields[cell][i] = api.CreateStringFromLongLong(NULL, SHIM_LOCK * cell + i);
        shim_fields[cell][SHIM_LOCK] = api.CreateStringFromLongLong(NULL, SHIM_LOCK * SHIM_CELLS + cell);
    }
}

static int is_valkey(RedisModuleCtx *ctx) {
    return api_has(ctx, "ValkeyModule_SetModuleOptions");
}

static const char own_name[] = "gothrottle", acl_category[] = "throttle";

/* Whether the configuration io-threads is 1. If CONFIG was renamed, nobody knows, and the answer is no. */
static int has_one_thread(RedisModuleCtx *ctx) {
    RedisModuleCallReply *reply = api_expect(api.Call(ctx, "CONFIG", "cc", "GET", "io-threads"), REPLY_ARRAY);
    if (reply == NULL) return 0;
    size_t len = 0;
    const char *threads = NULL;
    if (api.CallReplyLength(reply) == 2) threads = api.CallReplyStringPtr(api.CallReplyArrayElement(reply, 1), &len);
    int one = threads != NULL && len == 1 && threads[0] == '1';
    api.FreeCallReply(reply);
    return one;
}

/* Whether a server that asks a command for its keys does so on its main thread only. An I/O thread that asks runs into
 * the main thread: the server's context for the question is part of what the main thread propagates, and the server
 * aborts (seen on Redis 8.6, and on Valkey 8.1 and 9.1 in a cluster). Valkey 9.1 can change io-threads at run time. */
static int asks_on_main_thread(RedisModuleCtx *ctx) {
    /* Redis before 8 asks on its main thread only. The checks in access.c are not for it: its
     * GetCurrentUserName reads through NULL for a call without a user. */
    if (!is_valkey(ctx)) return api.GetServerVersion() < 0x080000 || has_one_thread(ctx);
    return !(api.GetContextFlags(ctx) & CTX_FLAGS_CLUSTER) && has_one_thread(ctx);
}

/* Makes the server ask a command of several keys for its keys, if it does so on its main thread:
 * COMMAND GETKEYS then lists them all, and the server checks them itself. Otherwise the server
 * sees only the first key, and access.c checks the others. */
static void ask_for_keys(const shim_command *c, char *flags, size_t size) {
    int asks = c->plans && !c->one_key && shim_server_asks;
    snprintf(flags, size, "%s%s", c->flags, asks ? " getkeys-api" : "");
    if (c->no_key) return;
    c->info.key_specs->flags &= ~(uint64_t)KEYSPEC_INCOMPLETE; /* an earlier OnLoad may have set it */
    if (asks) c->info.key_specs->flags |= KEYSPEC_INCOMPLETE;
}

/* A command for administrators is neither in the category read nor in the module's category: the
 * command shows what the key patterns of a user with +@read may hide. */
static void put_categories(const shim_command *c, int has_category, char *categories, size_t size) {
    if (strstr(c->flags, "admin")) {
        snprintf(categories, size, "admin dangerous slow");
        return;
    }
    snprintf(categories, size, "%s %s%s%s", c->writes ? "write" : "read", strstr(c->flags, "fast") ? "fast" : "slow",
             has_category ? " " : "", has_category ? acl_category : "");
}

static int register_command(RedisModuleCtx *ctx, const shim_command *c, int index, int has_category) {
    char flags[64];
    ask_for_keys(c, flags, sizeof flags);
    int key = !c->no_key; /* the position of the first key and of the last one, and the step */
    if (api.CreateCommand(ctx, c->name, shim_trampolines[index], flags, key, key, key) != API_OK) {
        if (c->only_if_free) {
            api.Log(ctx, "notice", "%s is taken, probably by redis-cell: left as it is", c->name);
            return API_OK;
        }
        api.Log(ctx, "warning", "gothrottle not loaded: the command name %s is taken", c->name);
        return API_ERR;
    }
    RedisModuleCommand *command = api.GetCommand(ctx, c->name);
    if (api.SetCommandInfo(command, &c->info) != API_OK) {
        api.Log(ctx, "warning", "gothrottle not loaded: the server refused the description of %s", c->name);
        return API_ERR;
    }
    if (api.SetCommandACLCategories != NULL) {
        char categories[64];
        put_categories(c, has_category, categories, sizeof categories);
        if (api.SetCommandACLCategories(command, categories) != API_OK)
            api.Log(ctx, "warning", "no ACL categories for %s: grant it by name", c->name);
    }
    return API_OK;
}

/* Registers the ACL category and returns whether it can be used. If the category exists already,
 * an earlier load has made it: the server keeps it when it undoes a load. */
static int add_category(RedisModuleCtx *ctx) {
    if (api.AddACLCategory == NULL || api.SetCommandACLCategories == NULL) return 0;
    errno = 0;
    return api.AddACLCategory(ctx, acl_category) == API_OK || errno == EBUSY;
}

/* Two Go runtimes in one process disturb each other, and a Go runtime stays in its process even if the server unloads
 * its library. So the first build of the module that is loaded leaves a mark in the environment, and another build
 * refuses to load. The mark names the process image: an exec keeps the environment, but not the runtime. The addresses
 * in the mark are mixed, so that the environment does not show them. */
static int claim_process(RedisModuleCtx *ctx) {
    static const char variable[] = "GOTHROTTLE_RUNTIME";
    static int claimed; /* by this build */
    if (claimed) return API_OK;
    /* Two addresses that the kernel chose for this process image. After an exec they differ. */
    char mark[64];
    snprintf(mark, sizeof mark, "%d-%lx", (int)getpid(), getauxval(AT_RANDOM) ^ getauxval(AT_SYSINFO_EHDR));
    const char *found = getenv(variable);
    if (found != NULL && strcmp(found, mark) == 0) {
        api.Log(ctx, "warning",
                "gothrottle not loaded: another build of it was loaded into this process before. "
                "Restart the server");
        return API_ERR;
    }
    setenv(variable, mark, 1);
    claimed = 1;
    return API_OK;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    shim_enter_process();
    if (shim_forked || api_resolve(ctx) != API_OK) return API_ERR;
    if (claim_process(ctx) != API_OK) return API_ERR;
    shim_module *module = goLoad();
    shim_loaded = module;
    int cl_throttle;
    if (parse_load_args(ctx, argv, argc, &cl_throttle) != API_OK) return API_ERR;
    if (api.IsModuleNameBusy(own_name)) {
        api.Log(ctx, "warning", "gothrottle not loaded: a module named %s is loaded", own_name);
        return API_ERR;
    }
    api.SetModuleAttribs(ctx, own_name, module->version_number, API_VERSION);
    if (check_needed_commands(ctx) != API_OK) return API_ERR;

    /* A denied call must not disturb WATCH: shim_apply signals the keys that changed. */
    int options = OPTION_NO_IMPLICIT_SIGNAL_MODIFIED | OPTION_HANDLE_REPL_ASYNC_LOAD;
    if (is_valkey(ctx)) {
        /* Replicate then does not look its command up, which took 9 % of "GO.THROTTLE" in make
         * bench on Valkey 9.1. check_needed_commands has looked all of them up. */
        options |= OPTION_SKIP_COMMAND_VALIDATION | OPTION_HANDLE_ATOMIC_SLOT_MIGRATION;
    }
    api.SetModuleOptions(ctx, options);

    make_field_names();
    int asked = shim_server_asks;
    shim_server_asks = asks_on_main_thread(ctx);
    int has_category = add_category(ctx);
    for (int i = 0; i < module->num_commands; i++) {
        shim_command *c = &module->commands[i];
        if (c->only_if_free) {
            if (cl_throttle == CL_NO) continue;
            if (cl_throttle == CL_YES) c->only_if_free = 0;
        }
        if (register_command(ctx, c, i, has_category) == API_OK) continue;
        shim_server_asks = asked; /* the commands may be those of a load under the other name */
        return API_ERR;
    }
    if (shim_load_config(ctx) != API_OK) return API_ERR;
    if (api.RegisterInfoFunc(ctx, info) != API_OK) return API_ERR;
    shim_watch_handlers(ctx); /* at the end: Redis 7.0 does not undo it when a load fails */
    return API_OK;
}

/* The server also unloads to undo a load: after MODULE LOADEX with a CONFIG that nobody knows.
 * Redis 8 aborts if a module refuses that. Before a command of ours has run, nothing depends on
 * the module, and the same library may be loaded again. */
int RedisModule_OnUnload(RedisModuleCtx *ctx) {
    if (!shim_has_run) return API_OK;
    api.Log(ctx, "warning",
            "gothrottle cannot be unloaded: a Go runtime stays in its process. Restart the server to "
            "upgrade or remove it");
    return API_ERR;
}
