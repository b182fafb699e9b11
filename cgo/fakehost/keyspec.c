/* This file finds the keys among the words of a command, as the server does for ACL, cluster and
 * COMMAND GETKEYS. */
#include "fake.h"

#include <string.h>

static void add_key(fake_keys *keys, int position) {
    if (keys->num == FAKE_KEYS) {
        fake_fault("more keys than %d", FAKE_KEYS);
        return;
    }
    keys->at[keys->num++] = position;
}

/* Runs the command so that it only names its keys. */
static fake_keys ask(RedisModuleCommand *command, RedisModuleString *const *argv, int argc) {
    RedisModuleCtx ctx = {.get_api = fake_get_api, .module = command->module, .command = command, .argc = argc, .asks_for_keys = 1};
    command->run(&ctx, (RedisModuleString **)argv, argc);
    if (ctx.reply.len > 0) fake_fault("%s replied when it was asked for its keys", command->name);
    fake_drop(&ctx.reply);
    return ctx.keys;
}

/* ACL and COMMAND GETKEYS follow a complete key spec, while a cluster always asks a command with
 * the flag getkeys-api. Both must find the same keys. */
void fake_find_keys(RedisModuleCommand *command, RedisModuleString *const *argv, int argc, fake_keys *keys) {
    keys->num = 0;
    if (command->has_key && argc > 1) add_key(keys, 1);
    if (!fake_has_flag(command, "getkeys-api")) return;
    fake_keys named = ask(command, argv, argc);
    if (!(command->key_flags & KEYSPEC_INCOMPLETE) && (named.num != keys->num || named.at[0] != keys->at[0]))
        fake_fault("%s named %d keys, its key spec is complete", command->name, named.num);
    *keys = named;
}

void fake_keys_of(const fake_words *words, fake_keys *keys) {
    RedisModuleCommand *command = fake_find_command(words->argv[0]->bytes);
    keys->num = 0;
    if (command != NULL) fake_find_keys(command, words->argv, words->argc, keys);
}

int fake_IsKeysPositionRequest(RedisModuleCtx *ctx) {
    fake.counts[FAKE_ASKED]++;
    return ctx->asks_for_keys;
}

/* The server does not compare the flags. A module whose flags differ from its key spec is wrong. */
void fake_KeyAtPosWithFlags(RedisModuleCtx *ctx, int position, int flags) {
    uint64_t wanted = ctx->command->key_flags & ~(uint64_t)KEYSPEC_INCOMPLETE;
    if (!ctx->asks_for_keys || position <= 0 || position >= ctx->argc || (uint64_t)flags != wanted) {
        fake_fault("KeyAtPosWithFlags(%d, 0x%x)", position, flags);
        return;
    }
    add_key(&ctx->keys, position);
}
