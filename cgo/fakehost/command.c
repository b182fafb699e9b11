/* This file registers the module, its commands and its ACL categories. */
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

RedisModuleCommand *fake_find_command(const char *name) {
    RedisModuleCommand *command = fake.commands;
    while (command != NULL && strcasecmp(command->name, name) != 0) command = command->next;
    return command;
}

int fake_has_flag(const RedisModuleCommand *command, const char *flag) {
    return among(command->flags, flag);
}

int fake_knows(const char *name) {
    if (fake_has(&fake.list[FAKE_RENAMED], name)) return 0;
    return fake_find_command(name) != NULL || fake_has(&fake.list[FAKE_TAKEN], name) ||
           among(server_commands, name);
}

void fake_forget_commands(fake_module *module) {
    RedisModuleCommand **link = &fake.commands;
    while (*link != NULL) {
        RedisModuleCommand *command = *link;
        if (command->module != module) {
            link = &command->next;
            continue;
        }
        *link = command->next;
        fake_drop(&command->info);
        free(command);
    }
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
    RedisModuleCommand *command = calloc(1, sizeof *command);
    if (command == NULL) abort();
    command->module = ctx->module;
    snprintf(command->name, sizeof command->name, "%s", name);
    snprintf(command->flags, sizeof command->flags, "%s", flags);
    command->run = run;
    command->arity = -1;
    command->has_key = first_key;
    command->next = fake.commands;
    fake.commands = command;
    return API_OK;
}

RedisModuleCommand *fake_GetCommand(RedisModuleCtx *ctx, const char *name) {
    RedisModuleCommand *command = fake_find_command(name);
    return command != NULL && command->module == ctx->module ? command : NULL;
}

/* The server compares the names of modules without regard to case. */
int fake_IsModuleNameBusy(const char *name) {
    return fake_has(&fake.list[FAKE_BUSY], name) || (fake.module != NULL && strcasecmp(fake.module->name, name) == 0);
}

int fake_AddACLCategory(RedisModuleCtx *ctx, const char *name) {
    MAY_FAIL;
    if (fake_has(&fake.list[FAKE_CATEGORIES], name)) {
        errno = EBUSY;
        return API_ERR;
    }
    fake_record(&fake.list[FAKE_CATEGORIES], name, strlen(name));
    return API_OK;
}

int fake_SetCommandACLCategories(RedisModuleCommand *command, const char *categories) {
    MAY_FAIL;
    snprintf(command->categories, sizeof command->categories, "%s", categories);
    return API_OK;
}

/* The module says how large an element is: an older or newer module may have another size. */
static const void *element(const void *first, size_t size, size_t i) {
    return (const char *)first + size * i;
}

/* The host follows one key spec, of the first word. */
static const char *put_specs(RedisModuleCommand *command, const api_command_info *info) {
    const api_key_spec *spec = info->key_specs, *next = element(spec, info->version->sizeof_keyspec, 1);
    if (next->begin_search_type != 0 || spec->begin_search_type != BEGIN_SEARCH_INDEX || spec->begin_search.index.pos != 1 ||
        spec->find_keys_type != FIND_KEYS_RANGE || spec->find_keys.range.lastkey != 0 ||
        spec->find_keys.range.keystep != 1 || spec->find_keys.range.limit != 0)
        return "a key spec that is not of the first word";
    command->key_flags = spec->flags;
    fake_printf(&command->info, "keys: flags=0x%llx\n", (unsigned long long)spec->flags);
    return NULL;
}

static const char *put_args(fake_text *out, const api_command_info *info, const api_arg *first, int depth) {
    static const char *const types[] = {"string",    "integer", "double", "key",  "pattern",
                                        "unix-time", "token",   "oneof",  "block"};
    for (size_t i = 0;; i++) {
        const api_arg *arg = element(first, info->version->sizeof_arg, i);
        if (arg->name == NULL) return NULL;
        if (arg->type < 0 || (size_t)arg->type >= sizeof types / sizeof *types) return "an argument's type";
        if (arg->type == ARG_PURE_TOKEN && arg->token == NULL) return "a token argument without token";
        if (arg->type == ARG_KEY ? arg->key_spec_index < 0 : arg->key_spec_index > 0) return "an argument's key spec";
        if ((arg->type >= ARG_BLOCK - 1) != (arg->subargs != NULL)) return "an argument's parts";
        fake_printf(out, "%*sarg: %s %s", 2 * depth, "", arg->name, types[arg->type]);
        if (arg->token != NULL) fake_printf(out, " %s", arg->token);
        if (arg->flags & ARG_OPTIONAL) fake_printf(out, " optional");
        if (arg->flags & ARG_MULTIPLE) fake_printf(out, " multiple");
        fake_printf(out, ": %s\n", arg->summary ? arg->summary : "-");
        const char *wrong = arg->subargs ? put_args(out, info, arg->subargs, depth + 1) : NULL;
        if (wrong) return wrong;
    }
}

/* Copies the description as text, so that the module may free it. */
int fake_SetCommandInfo(RedisModuleCommand *command, const api_command_info *info) {
    MAY_FAIL;
    fake_text *out = &command->info;
    const char *wrong = NULL;
    fake_printf(out, "summary: %s\ncomplexity: %s\nsince: %s\narity: %d\ntips: %s\n", info->summary, info->complexity,
                info->since, info->arity, info->tips);
    if (info->version == NULL || info->version->version != 1) wrong = "the version";
    if (!wrong && info->key_specs != NULL) wrong = put_specs(command, info);
    if (!wrong && info->args != NULL) wrong = put_args(out, info, info->args, 0);
    if (wrong) {
        fake_fault("SetCommandInfo %s: %s", command->name, wrong);
        return API_ERR;
    }
    command->arity = info->arity;
    return API_OK;
}

/* The module asks without a key, so there is no answer but whether the server has the command. */
int *fake_GetCommandKeys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int *num_keys) {
    errno = fake_knows(argv[0]->bytes) ? EINVAL : ENOENT;
    return NULL;
}
