/* This file starts and stops the host, hands out the API functions, and calls the module. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

/* These symbols are weak: this package links without package cgo, which defines them. */
#pragma weak RedisModule_OnLoad
#pragma weak RedisModule_OnUnload
#pragma weak shim_monotonic_us
#pragma weak shim_clock
#pragma weak shim_has_run
#pragma weak shim_forked

fake_host fake;

static const fake_function functions[] = {
#define ROW(needed, release, result, name, parameters) {#name, release, needed, (void *)fake_##name},
    API_FUNCTIONS(ROW)
#undef ROW
};
enum { NUM_FUNCTIONS = sizeof functions / sizeof *functions };

const fake_function *fake_function_at(int i) {
    return i < NUM_FUNCTIONS ? &functions[i] : NULL;
}

int fake_get_api(const char *name, void *pointer_to_function) {
    static const char redis[] = "RedisModule_", valkey[] = "ValkeyModule_";
    if (strncmp(name, redis, strlen(redis)) == 0) {
        name += strlen(redis);
    } else if (fake.is[FAKE_VALKEY] && strncmp(name, valkey, strlen(valkey)) == 0) {
        name += strlen(valkey);
    } else {
        return API_ERR;
    }
    if (fake_has(FAKE_HIDDEN, name)) return API_ERR;
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

/* The module's clock outlives a host and never goes back. A new host therefore starts at the next
 * full hour after the latest time that the module has seen. The first host starts at 2100-01-01. */
void fake_start(void) {
    const int64_t first = 4102444800000000, hour = 3600000000;
    int64_t last = shim_clock.last_us;
    fake.now_us = last < first ? first : (last / hour + 1) * hour;
    fake.mono_us = 1000000;
    fake.is[FAKE_IO_THREADS] = 1;
    fake.is[FAKE_VERSION] = 0x080603;
    shim_has_run = shim_forked = 0; /* no command has run in a new server, and it isn't a child */
    real_monotonic_us = shim_monotonic_us;
    shim_monotonic_us = monotonic_us;
}

void fake_stop(void) {
    shim_monotonic_us = real_monotonic_us;
    while (fake.keys != NULL) fake_remove(fake.keys);
    free(fake.module);
    fake_drop(&fake.faults);
    for (int i = 0; i < FAKE_DEPTH; i++) fake_drop(&fake.contexts[i].reply);
    fake_host stopped = {0};
    memcpy(stopped.alive, fake.alive, sizeof stopped.alive);
    fake = stopped;
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
    ctx->get_api = fake_get_api;
    ctx->module = module;
    ctx->command = NULL;
    ctx->keys.num = 0;
    ctx->reply.len = 0;
    ctx->asks_for_keys = 0;
    fake.depth++;
    return ctx;
}

/* After a failed load nothing is left of the module but its ACL categories, which a server also removes. */
int fake_load(const fake_words *args) {
    RedisModuleCtx *ctx = enter(NULL);
    fake.loading = 1;
    /* As in the server, the module gets the host's own vector. */
    int result = RedisModule_OnLoad(ctx, (RedisModuleString **)args->argv, args->argc);
    fake.loading = 0;
    fake.depth--;
    if (result != API_OK) {
        free(ctx->module);
        return result;
    }
    if (fake_IsModuleNameBusy(ctx->module->name)) fake_fault("loaded as %s, a name that is busy", ctx->module->name);
    free(fake.module);
    fake.module = ctx->module;
    return result;
}

/* After an unload the host has no commands and no INFO function of the module. As in the server,
 * the module's ACL categories stay. */
int fake_unload(void) {
    if (fake.module == NULL) return API_ERR;
    RedisModuleCtx *ctx = enter(fake.module);
    int result = RedisModule_OnUnload(ctx);
    fake.depth--;
    if (result != API_OK) return result;
    free(fake.module);
    fake.module = NULL;
    return result;
}

/* Overwrites the stack that the command is about to use, so that what the module forgets to set is
 * never 0 by chance. */
__attribute__((noinline)) static void poison_stack(void) {
    volatile char stack[1 << 16];
    memset((char *)stack, 0xa5, sizeof stack);
    __asm__ volatile("" : : "r"(stack) : "memory"); /* the compiler must not drop the memset */
}

/* Runs a command, which must free what it takes, and keep none of its words. */
static void run_command(RedisModuleCtx *ctx, RedisModuleCommand *command, const fake_words *words) {
    static const char *const kinds[FAKE_KINDS] = {"strings", "open keys", "blocks", "replies", "users"};
    long before[FAKE_KINDS];
    memcpy(before, fake.alive, sizeof before);
    fake_find_keys(command, words->argv, words->argc, &ctx->keys);
    poison_stack();
    if (command->run(ctx, (RedisModuleString **)words->argv, words->argc) != API_OK)
        fake_fault("%s did not return OK", command->name);
    for (int i = 0; i < FAKE_KINDS; i++) {
        if (fake.alive[i] != before[i]) fake_fault("%s left %ld %s", command->name, fake.alive[i] - before[i], kinds[i]);
    }
    for (int i = 0; i < words->argc; i++) {
        if (words->argv[i]->refs != 1) fake_fault("%s kept %s", command->name, words->argv[i]->bytes);
    }
}

void fake_run(const fake_words *words) {
    RedisModuleCtx *ctx = enter(fake.module);
    RedisModuleCommand *command = ctx->command = fake_find_command(words->argv[0]->bytes);
    int argc = words->argc;
    ctx->argv = words->argv;
    if (command == NULL) {
        fake_printf(&ctx->reply, "-ERR unknown command '%s'\r\n", words->argv[0]->bytes);
    } else if (command->arity > 0 ? argc != command->arity : argc < -command->arity) {
        fake_printf(&ctx->reply, "-ERR wrong number of arguments for '%s' command\r\n", command->name);
    } else {
        run_command(ctx, command, words);
    }
    fake.depth--;
}
