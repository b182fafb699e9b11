/* The host itself: its table of functions, its clocks, and the calls into the module. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

/* Weak because the module is linked in only where both packages come together. */
#pragma weak RedisModule_OnLoad
#pragma weak RedisModule_OnUnload
#pragma weak shim_monotonic_us
#pragma weak shim_clock_last_us

fake_host fake;

enum { OPTIONAL = 0, REQUIRED = 1 };
static const struct {
    const char *name, *release;
    int required;
    void *function;
} functions[] = {
#define ROW(needed, release, result, name, parameters) {#name, release, needed, (void *)fake_##name},
    API_FUNCTIONS(ROW)
#undef ROW
};
enum { NUM_FUNCTIONS = sizeof functions / sizeof *functions };

const char *fake_function(int i, const char **release, int *required) {
    if (i >= NUM_FUNCTIONS) return NULL;
    *release = functions[i].release;
    *required = functions[i].required;
    return functions[i].name;
}

static int get_api(const char *name, void *pointer_to_function) {
    static const char redis[] = "RedisModule_", valkey[] = "ValkeyModule_";
    if (strncmp(name, redis, strlen(redis)) == 0) {
        name += strlen(redis);
    } else if (fake.valkey && strncmp(name, valkey, strlen(valkey)) == 0) {
        name += strlen(valkey);
    } else {
        return API_ERR;
    }
    if (fake_has(&fake.list[FAKE_HIDDEN], name)) return API_ERR;
    for (int i = 0; i < NUM_FUNCTIONS; i++) {
        if (strcmp(functions[i].name, name) != 0) continue;
        *(void **)pointer_to_function = functions[i].function;
        return API_OK;
    }
    return API_ERR;
}

long long fake_CachedMicroseconds(void) {
    return fake.now_us;
}

static int64_t monotonic_us(void) {
    return fake.mono_us;
}
static int64_t (*real_monotonic_us)(void);

/* Each host starts at a full hour after all that the module was ever told, so that its
 * clock, which outlives a host, agrees with ours. The first one at 2100-01-01. */
void fake_start(void) {
    const int64_t first = 4102444800000000, hour = 3600000000;
    int64_t last = shim_clock_last_us;
    fake.now_us = last < first ? first : (last / hour + 1) * hour;
    fake.mono_us = 1000000;
    real_monotonic_us = shim_monotonic_us;
    shim_monotonic_us = monotonic_us;
}

void fake_stop(void) {
    shim_monotonic_us = real_monotonic_us;
    fake_entry *entry;
    while ((entry = fake_walk(NULL)) != NULL) fake_remove(entry);
    if (fake.module != NULL) fake_forget_commands(fake.module);
    free(fake.module);
    for (int i = 0; i < FAKE_LISTS; i++) fake_drop(&fake.list[i]);
    for (int i = 0; i < FAKE_DEPTH; i++) fake_drop(&fake.contexts[i].reply);
    fake = (fake_host){.strings = fake.strings, .handles = fake.handles, .blocks = fake.blocks};
}

fake_words *fake_new_words(int argc) {
    fake_words *words = calloc(1, sizeof *words + (size_t)argc * sizeof *words->argv);
    if (words == NULL) abort();
    words->argc = argc;
    return words;
}

void fake_set_word(fake_words *words, int i, const char *bytes, size_t len) {
    words->argv[i] = fake_new_string(bytes, len);
}

void fake_free_words(fake_words *words) {
    for (int i = 0; i < words->argc; i++) fake_release(words->argv[i]);
    free(words);
}

static RedisModuleCtx *enter(fake_module *module) {
    if (fake.depth + 1 >= FAKE_DEPTH) abort();
    RedisModuleCtx *ctx = &fake.contexts[fake.depth];
    ctx->get_api = get_api;
    ctx->module = module;
    ctx->command = NULL;
    ctx->num_keys = 0;
    ctx->reply.len = 0;
    ctx->asks_for_keys = ctx->num_told = 0;
    if (fake.depth == 0) {
        fake.list[FAKE_EFFECTS].len = 0;
        fake.list[FAKE_EVENTS].len = 0;
        fake.list[FAKE_SIGNALS].len = 0;
    }
    fake.depth++;
    return ctx;
}

/* A load that fails leaves nothing of the module behind. */
int fake_load(const fake_words *args) {
    RedisModuleCtx *ctx = enter(NULL);
    fake.loading = 1;
    /* The server hands over its own vector. */
    int result = RedisModule_OnLoad(ctx, (RedisModuleString **)args->argv, args->argc);
    fake.loading = 0;
    fake.depth--;
    if (result != API_OK) {
        if (ctx->module != NULL) fake_forget_commands(ctx->module);
        free(ctx->module);
        if (fake.module == NULL) fake.list[FAKE_CATEGORIES].len = 0;
        return result;
    }
    if (fake.module != NULL) {
        fake_fault("loaded twice");
        free(fake.module);
    }
    fake.module = ctx->module;
    return result;
}

int fake_unload(void) {
    RedisModuleCtx *ctx = enter(fake.module);
    int result = RedisModule_OnUnload(ctx);
    fake.depth--;
    return result;
}

/* A cluster finds a slot by what the command tells: that must be what its spec says. */
static void check_told_keys(RedisModuleCtx *ctx, const fake_words *words, int first) {
    RedisModuleCommand *command = ctx->command;
    int n = ctx->num_keys > 0 ? ctx->num_keys : 0, wrong = 0;
    ctx->asks_for_keys = 1;
    command->run(ctx, (RedisModuleString **)words->argv, words->argc);
    ctx->asks_for_keys = 0;
    for (int i = 0; i < ctx->num_told && i < n; i++) wrong |= ctx->told[i] != first + i;
    if (wrong || ctx->num_told != n) fake_fault("%s told %d keys, not %d", command->name, ctx->num_told, n);
    if (ctx->reply.len > 0) fake_fault("%s replied when it was asked for its keys", command->name);
}

void fake_run(const fake_words *words) {
    RedisModuleCtx *ctx = enter(fake.module);
    RedisModuleCommand *command = ctx->command = fake_find_command(words->argv[0]->bytes);
    int argc = words->argc, first = 0;
    ctx->num_keys = command != NULL ? fake_find_keys(command, words->argv, argc, &first) : 0;
    ctx->keys = words->argv + first;
    if (command == NULL) {
        fake_printf(&ctx->reply, "-ERR unknown command '%s'\r\n", words->argv[0]->bytes);
    } else if (!fake.skip_arity &&
               (command->arity > 0 ? argc != command->arity : argc < -command->arity)) {
        fake_WrongArity(ctx);
    } else {
        if (strstr(command->flags, "getkeys-api") != NULL) check_told_keys(ctx, words, first);
        else if (command->counts_keys) fake_fault("%s cannot tell a cluster its keys", command->name);
        long strings = fake.strings, handles = fake.handles, blocks = fake.blocks;
        if (command->run(ctx, (RedisModuleString **)words->argv, argc) != API_OK)
            fake_fault("%s did not return OK", command->name);
        strings = fake.strings - strings;
        handles = fake.handles - handles;
        blocks = fake.blocks - blocks;
        if (strings || handles || blocks)
            fake_fault("%s left %ld strings, %ld open keys, %ld blocks", command->name, strings, handles,
                       blocks);
        for (int i = 0; i < argc; i++) {
            if (words->argv[i]->refs != 1) fake_fault("%s kept %s", command->name, words->argv[i]->bytes);
        }
    }
    fake.depth--;
}
