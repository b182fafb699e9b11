/* This file finds the keys among the words of a command, as the server does for ACL, cluster and
 * COMMAND GETKEYS. */
#include "fake.h"

#include <string.h>

/* Finds the last key of a range and the step from key to key. */
static void find_range(const api_key_spec *spec, int argc, int first, long long *last, int *step) {
    int lastkey = spec->find_keys.range.lastkey, limit = spec->find_keys.range.limit;
    *step = spec->find_keys.range.keystep;
    if (lastkey >= 0) {
        *last = first + lastkey;
    } else if (limit == 0) {
        *last = argc + lastkey;
    } else {
        *last = first + (argc - first) / limit + lastkey;
    }
}

/* Returns 0 if the key spec cannot be relied upon: it is incomplete, or the words do not fit it. */
static int follow_spec(const RedisModuleCommand *command, int argc, fake_keys *keys) {
    const api_key_spec *spec = &command->spec;
    int first = spec->begin_search.index.pos, step = 1;
    long long last;
    keys->num = 0;
    if (spec->begin_search_type == 0 && fake_has_flag(command, "getkeys-api")) return 0;
    if (first == 0) return 1; /* no key */
    find_range(spec, argc, first, &last, &step);
    if (first >= argc || last >= argc || last < first || spec->flags & KEYSPEC_INCOMPLETE) return 0;
    for (int i = first; i <= last; i += step) fake_add_key(keys, i);
    return 1;
}

void fake_add_key(fake_keys *keys, int position) {
    if (keys->num == FAKE_KEYS) {
        fake_fault("more keys than %d", FAKE_KEYS);
        return;
    }
    keys->at[keys->num++] = position;
}

/* Runs the command so that it only tells where its keys are. */
static void ask(RedisModuleCommand *command, RedisModuleString *const *argv, int argc, fake_keys *told) {
    RedisModuleCtx ctx = {.get_api = fake_get_api, .module = command->module, .command = command, .asks_for_keys = 1};
    command->run(&ctx, (RedisModuleString **)argv, argc);
    if (ctx.reply.len > 0) fake_fault("%s replied when it was asked for its keys", command->name);
    fake_drop(&ctx.reply);
    told->num = 0;
    for (int i = 0; i < ctx.keys.num; i++) {
        if (ctx.keys.at[i] >= argc) {
            fake_fault("%s told a key at %d of %d words", command->name, ctx.keys.at[i], argc);
        } else {
            fake_add_key(told, ctx.keys.at[i]);
        }
    }
}

/* ACL and COMMAND GETKEYS follow a complete key spec, while a cluster always asks a command with
 * the flag getkeys-api. Both must find the same keys. */
void fake_find_keys(RedisModuleCommand *command, RedisModuleString *const *argv, int argc, fake_keys *keys) {
    int found = follow_spec(command, argc, keys);
    if (!fake_has_flag(command, "getkeys-api")) return;
    fake_keys told;
    ask(command, argv, argc, &told);
    if (found && (told.num != keys->num || memcmp(told.at, keys->at, (size_t)told.num * sizeof *told.at) != 0))
        fake_fault("%s told %d keys, not %d", command->name, told.num, keys->num);
    *keys = told;
}

void fake_keys_of(const fake_words *words, fake_keys *keys) {
    RedisModuleCommand *command = fake_find_command(words->argv[0]->bytes);
    keys->num = 0;
    if (command != NULL) fake_find_keys(command, words->argv, words->argc, keys);
}

int fake_IsKeysPositionRequest(RedisModuleCtx *ctx) {
    CALLED(IsKeysPositionRequest);
    return ctx->asks_for_keys;
}

void fake_KeyAtPosWithFlags(RedisModuleCtx *ctx, int position, int flags) {
    CALLED(KeyAtPosWithFlags);
    if (!ctx->asks_for_keys || position <= 0 || flags == 0) {
        fake_fault("KeyAtPosWithFlags(%d, %d)", position, flags);
        return;
    }
    /* The server does not compare the flags. A module that tells others than its key spec is wrong. */
    const api_key_spec *spec = &ctx->command->spec;
    if (spec->flags != 0 && (uint64_t)flags != (spec->flags & ~(uint64_t)KEYSPEC_INCOMPLETE))
        fake_fault("%s told the key flags 0x%x", ctx->command->name, flags);
    fake_add_key(&ctx->keys, position);
}
