/* This file registers the module, its commands and its ACL categories. It finds the keys among the words of a command, as the
 * server does for ACL, cluster and COMMAND GETKEYS. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Says whether word is in list, whose words are separated by blanks. */
static int among(const char *list, const char *word) {
    for (const char *at = list; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (n == strlen(word) && strncasecmp(at, word, n) == 0) return 1;
        at += n + strspn(at + n, " ");
    }
    return 0;
}

static const char server_commands[] =
    "DEL UNLINK PERSIST PEXPIREAT SET HSET HDEL ZADD ZREM ZREMRANGEBYSCORE ZCOUNT ZRANGE GET MULTI EXEC CONFIG EXISTS PING";

static RedisModuleCommand *find_in(fake_module *module, const char *name) {
    for (int i = 0; module != NULL && i < module->num_commands; i++) {
        if (strcasecmp(module->commands[i].name, name) == 0) return &module->commands[i];
    }
    return NULL;
}

RedisModuleCommand *fake_find_command(const char *name) {
    return find_in(fake.module, name);
}

int fake_knows(const char *name) {
    if (fake_has(FAKE_RENAMED, name)) return 0;
    return fake_find_command(name) != NULL || fake_has(FAKE_TAKEN, name) ||
           among(server_commands, name);
}

void fake_SetModuleAttribs(RedisModuleCtx *ctx, const char *name, int version, int api_version) {
    if (!fake.loading || ctx->module != NULL) return;
    if (api_version != API_VERSION) fake_fault("API version %d", api_version);
    ctx->module = calloc(1, sizeof *ctx->module);
    if (ctx->module == NULL) abort();
    snprintf(ctx->module->name, sizeof ctx->module->name, "%s", name);
    ctx->module->version = version;
}

void fake_SetModuleOptions(RedisModuleCtx *ctx, int options) {
    ctx->module->options = options;
}

int fake_CreateCommand(RedisModuleCtx *ctx, const char *name, RedisModuleCmdFunc run, const char *flags,
                       int first_key, int last_key, int step) {
    MAY_FAIL;
    if (!fake.loading || fake_knows(name)) return API_ERR;
    if (first_key != last_key || last_key != step || step < 0 || step > 1)
        fake_fault("%s: keys %d, %d, %d: the fake host knows the first word as a key", name, first_key, last_key, step);
    if (ctx->module->num_commands == SHIM_MAX_COMMANDS) abort();
    RedisModuleCommand *command = &ctx->module->commands[ctx->module->num_commands++];
    snprintf(command->name, sizeof command->name, "%s", name);
    snprintf(command->flags, sizeof command->flags, "%s", flags);
    command->run = run;
    command->arity = -1;
    command->has_key = first_key;
    return API_OK;
}

RedisModuleCommand *fake_GetCommand(RedisModuleCtx *ctx, const char *name) {
    return find_in(ctx->module, name);
}

/* The server compares the names of modules without regard to case. */
int fake_IsModuleNameBusy(const char *name) {
    return fake_has(FAKE_BUSY, name) || (fake.module != NULL && strcasecmp(fake.module->name, name) == 0);
}

int fake_AddACLCategory(RedisModuleCtx *ctx, const char *name) {
    MAY_FAIL;
    if (fake_has(FAKE_CATEGORIES, name)) {
        errno = EBUSY;
        return API_ERR;
    }
    fake_note(FAKE_CATEGORIES, "%s", name);
    return API_OK;
}

int fake_SetCommandACLCategories(RedisModuleCommand *command, const char *categories) {
    MAY_FAIL;
    snprintf(command->categories, sizeof command->categories, "%s", categories);
    return API_OK;
}

/* The host takes what it needs. COMMAND DOCS of a real server shows the rest: see tests/surface_test.go. */
int fake_SetCommandInfo(RedisModuleCommand *command, const api_command_info *info) {
    MAY_FAIL;
    command->arity = info->arity;
    if (info->key_specs != NULL) command->key_flags = info->key_specs->flags;
    return API_OK;
}

/* The module asks without a key, so there is no answer but whether the server has the command. */
int *fake_GetCommandKeys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int *num_keys) {
    errno = fake_knows(argv[0]->bytes) ? EINVAL : ENOENT;
    return NULL;
}

static void add_key(fake_keys *keys, int position) {
    if (keys->num == FAKE_KEYS) abort();
    keys->at[keys->num++] = position;
}

/* Runs the command so that it only names its keys. */
static fake_keys ask(RedisModuleCommand *command, RedisModuleString *const *argv, int argc) {
    RedisModuleCtx ctx = {.get_api = fake_get_api, .module = fake.module, .command = command, .argc = argc, .asks_for_keys = 1};
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
    if (!among(command->flags, "getkeys-api")) return;
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
