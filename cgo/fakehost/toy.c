/* This file is a module of one command, TOY, which the tests of the host itself load. */
#include "fake.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static int is(const RedisModuleString *word, const char *text) {
    return strcasecmp(word->bytes, text) == 0;
}

/* The host's clients read integers, arrays and errors: a test reads all else as an error. */
static int say(RedisModuleCtx *ctx, const char *text) {
    return fake_ReplyWithError(ctx, text);
}

static int say_reply(RedisModuleCtx *ctx, RedisModuleCallReply *reply) {
    if (reply == NULL) return say(ctx, errno == ENOENT ? "ENOENT" : errno == EBADF ? "EBADF" : "EINVAL");
    fake_text text = {0};
    int type = fake_CallReplyType(reply);
    size_t len;
    if (type == REPLY_ERROR) {
        const char *bytes = fake_CallReplyStringPtr(reply, &len);
        fake_append(&text, bytes, len);
    } else if (type == REPLY_ARRAY) {
        for (size_t i = 0; i < fake_CallReplyLength(reply); i++) {
            const char *bytes = fake_CallReplyStringPtr(fake_CallReplyArrayElement(reply, i), &len);
            fake_append(&text, bytes, len);
            fake_append(&text, " ", 1);
        }
        fake_append(&text, ".", 1);
    }
    if (type == REPLY_INTEGER) {
        fake_ReplyWithLongLong(ctx, fake_CallReplyInteger(reply));
    } else {
        say(ctx, text.bytes);
    }
    fake_drop(&text);
    fake_FreeCallReply(reply);
    return API_OK;
}

/* The keys are the first word and each word that follows the word KEY. */
static int tell_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    fake_KeyAtPosWithFlags(ctx, 1, KEYSPEC_RW | KEYSPEC_ACCESS);
    if (argc == 3 && is(argv[2], "open-when-asked")) fake_CloseKey(fake_OpenKey(ctx, argv[1], KEY_READ));
    for (int i = 2; i < argc; i++) {
        if (is(argv[i - 1], "key")) fake_KeyAtPosWithFlags(ctx, i, KEYSPEC_RW | KEYSPEC_ACCESS);
        if (is(argv[i], "beyond")) fake_KeyAtPosWithFlags(ctx, argc, KEYSPEC_RW | KEYSPEC_ACCESS);
    }
    return API_OK;
}

/* Opens all words. */
static int open_all(RedisModuleCtx *ctx, RedisModuleString **words, int n) {
    for (int i = 0; i < n; i++) fake_CloseKey(fake_OpenKey(ctx, words[i], KEY_READ));
    return fake_ReplyWithLongLong(ctx, n);
}

static int say_content(RedisModuleCtx *ctx, RedisModuleString *name, int mode) {
    RedisModuleKey *key = fake_OpenKey(ctx, name, mode);
    size_t len;
    const char *bytes = fake_StringDMA(key, &len, mode);
    say(ctx, bytes);
    fake_CloseKey(key);
    return API_OK;
}

static RedisModuleCallReply *leaked;

/* TOY key action [word ...] */
static int toy(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (fake_IsKeysPositionRequest(ctx)) return tell_keys(ctx, argv, argc);
    RedisModuleString *key = argv[1], *action = argv[2];
    long long start, stop;
    if (is(action, "zcount") && argc == 5)
        return say_reply(ctx, fake_Call(ctx, "ZCOUNT", "sss", key, argv[3], argv[4]));
    if (is(action, "zcount-open") && argc == 5) {
        RedisModuleKey *open = fake_OpenKey(ctx, key, KEY_READ | KEY_WRITE);
        say_reply(ctx, fake_Call(ctx, "zcount", "scc", key, argv[3]->bytes, argv[4]->bytes));
        fake_CloseKey(open);
        return API_OK;
    }
    if (is(action, "zrange") && argc == 5 && fake_StringToLongLong(argv[3], &start) == API_OK &&
        fake_StringToLongLong(argv[4], &stop) == API_OK)
        return say_reply(ctx, fake_Call(ctx, "ZRANGE", "bllc", key->bytes, key->len, start, stop, "WITHSCORES"));
    if (is(action, "zrange-words") && argc == 6)
        return say_reply(ctx, fake_Call(ctx, "ZRANGE", "ssss", key, argv[3], argv[4], argv[5]));
    if (is(action, "open")) return open_all(ctx, argv + 3, argc - 3);
    if (is(action, "content")) return say_content(ctx, key, KEY_READ);
    if (is(action, "content-to-write")) return say_content(ctx, key, KEY_READ | KEY_WRITE);
    if (is(action, "arity")) return say_reply(ctx, fake_Call(ctx, "ZCOUNT", "s", key));
    if (is(action, "format")) return say_reply(ctx, fake_Call(ctx, "ZCOUNT", "s!", key));
    if (is(action, "other")) return say_reply(ctx, fake_Call(ctx, "DEL", "s", key));
    if (is(action, "undeclared")) return say_reply(ctx, fake_Call(ctx, "ZCOUNT", "scc", action, "0", "1"));
    if (is(action, "leak")) {
        leaked = fake_Call(ctx, "ZCOUNT", "scc", key, "0", "1");
        return say(ctx, "leaked");
    }
    if (is(action, "free")) {
        fake_FreeCallReply(leaked);
        return say(ctx, "freed");
    }
    return say(ctx, "no such action");
}

static void info(RedisModuleInfoCtx *ctx, int for_crash_report) {
    (void)for_crash_report;
    if (fake_InfoAddSection(ctx, "") == API_OK) fake_InfoAddFieldLongLong(ctx, "answer", 42);
}

static int describe(RedisModuleCtx *ctx) {
    static const api_info_version version = {1, sizeof(api_history_entry), sizeof(api_key_spec), sizeof(api_arg)};
    static api_key_spec specs[] = {{.flags = KEYSPEC_RW | KEYSPEC_ACCESS | KEYSPEC_INCOMPLETE,
                                    .begin_search_type = BEGIN_SEARCH_INDEX,
                                    .begin_search.index.pos = 1,
                                    .find_keys_type = FIND_KEYS_RANGE,
                                    .find_keys.range = {0, 1, 0}},
                                   {0}};
    static const api_command_info description = {.version = &version,
                                                 .summary = "Tests the host.",
                                                 .complexity = "O(1)",
                                                 .since = "0",
                                                 .tips = "nondeterministic_output",
                                                 .arity = -3,
                                                 .key_specs = specs};
    return fake_SetCommandInfo(fake_GetCommand(ctx, "toy"), &description);
}

static int refuses_unload;

/* The first argument is the module's name. The second one says what the module refuses. */
int fake_toy_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    const char *name = argc > 0 ? fake_StringPtrLen(argv[0], NULL) : "toy";
    refuses_unload = argc > 1 && is(argv[1], "unload");
    if (fake_IsModuleNameBusy(name)) return API_ERR;
    fake_SetModuleAttribs(ctx, name, 1, API_VERSION);
    if (fake_AddACLCategory(ctx, "toys") != API_OK) fake_Log(ctx, "notice", errno == EBUSY ? "EBUSY" : "error");
    if (fake_CreateCommand(ctx, "toy", toy, "write getkeys-api", 1, 1, 1) != API_OK) return API_ERR;
    if (describe(ctx) != API_OK || fake_RegisterInfoFunc(ctx, info) != API_OK) return API_ERR;
    return argc > 1 && is(argv[1], "load") ? API_ERR : API_OK;
}

int fake_toy_unload(RedisModuleCtx *ctx) {
    (void)ctx;
    return refuses_unload ? API_ERR : API_OK;
}
