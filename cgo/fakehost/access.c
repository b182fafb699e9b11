/* This file knows one user, who may use all keys except those that the test forbids. */
#include "fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char user_name[] = "alice";

struct RedisModuleUser {
    const char *name;
};

static void fill(fake_list *list, const RedisModuleString *key) {
    fake_word(list, key->bytes, key->len);
    fake_end(list);
}

static int holds(const fake_list *list, const RedisModuleString *key) {
    return fake_holds(list, key->bytes, key->len);
}

int fake_GetServerVersion(void) {
    return fake.is[FAKE_VERSION];
}

int fake_GetSelectedDb(RedisModuleCtx *ctx) {
    (void)ctx;
    return fake.is[FAKE_DATABASE];
}

int fake_GetContextFlags(RedisModuleCtx *ctx) {
    (void)ctx;
    const int master = 1 << 2; /* the module must look at its own bit only */
    return fake.is[FAKE_CLUSTER] ? master | CTX_FLAGS_CLUSTER : master;
}

RedisModuleString *fake_GetCurrentUserName(RedisModuleCtx *ctx) {
    (void)ctx;
    return fake.is[FAKE_NO_USER] ? NULL : fake_give_string(user_name, strlen(user_name));
}

RedisModuleUser *fake_GetModuleUserFromUserName(RedisModuleString *name) {
    if (fake.is[FAKE_FORGOTTEN] || strcmp(name->bytes, user_name) != 0) return NULL;
    RedisModuleUser *user = calloc(1, sizeof *user);
    if (user == NULL) abort();
    user->name = user_name;
    fake.users++;
    return user;
}

int fake_FreeModuleUser(RedisModuleUser *user) {
    free(user);
    fake.users--;
    return API_OK;
}

/* The question must be about the command that runs now, with a word for each word that the command
 * needs. The host remembers the key for the call that runs now: the innermost one. */
static int check(RedisModuleUser *user, RedisModuleString **argv, int argc) {
    RedisModuleCtx *ctx = fake.depth > 0 ? &fake.contexts[fake.depth - 1] : NULL;
    const RedisModuleCommand *command = ctx != NULL ? ctx->command : NULL;
    if (user == NULL || command == NULL || argc < abs(command->arity) || strcasecmp(command->name, argv[0]->bytes) != 0) {
        fake_fault("a permission of %s with %d words", argv[0]->bytes, argc);
        return API_ERR;
    }
    const RedisModuleString *key = argv[1];
    fill(&fake.list[FAKE_CHECKS], key);
    if (holds(&fake.list[FAKE_FORBIDDEN], key)) {
        errno = EACCES;
        return API_ERR;
    }
    fill(&ctx->permitted, key);
    return API_OK;
}

/* As Valkey 9.1 for a user who may use some databases only. */
int fake_ACLCheckCommandPermissions(RedisModuleUser *user, RedisModuleString **argv, int argc) {
    if (!fake.is[FAKE_VALKEY] || fake_has(&fake.list[FAKE_HIDDEN], "ACLCheckPermissions")) return check(user, argv, argc);
    errno = EACCES;
    return API_ERR;
}

int fake_ACLCheckPermissions(RedisModuleUser *user, RedisModuleString **argv, int argc, int database, int *reason) {
    if (!fake.is[FAKE_VALKEY] || database != fake.is[FAKE_DATABASE] || reason != NULL) fake_fault("ACLCheckPermissions of database %d", database);
    return check(user, argv, argc);
}

int fake_ACLAddLogEntry(RedisModuleCtx *ctx, RedisModuleUser *user, RedisModuleString *object, int reason) {
    (void)ctx;
    if (reason != ACL_LOG_KEY) fake_fault("ACLAddLogEntry with the reason %d", reason);
    fake_word(&fake.list[FAKE_ACL_LOG], user->name, strlen(user->name));
    fill(&fake.list[FAKE_ACL_LOG], object);
    return API_OK;
}

/* Notes that a read command of the server's has found a key at this node. */
void fake_note_here(RedisModuleCtx *ctx, const RedisModuleString *key) {
    fill(&ctx->here, key);
}

/* If the server asks the command for its keys, the server checks all of them. Otherwise the command
 * must check all keys but the first: the user, if there is one, and in a cluster the place, unless no
 * call of the server says where. */
int fake_was_checked(const RedisModuleCtx *ctx, const RedisModuleString *key) {
    if (ctx->command == NULL || ctx->asks_for_keys || fake_has_flag(ctx->command, "getkeys-api")) return 0;
    if (!fake.is[FAKE_NO_USER] && !holds(&ctx->permitted, key)) return 0;
    return !fake.is[FAKE_CLUSTER] || fake.calls_fail || holds(&ctx->here, key);
}

static unsigned slot_of(const char *bytes, size_t len) {
    unsigned crc = 0; /* CRC16, XMODEM */
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x11021 : crc << 1;
    }
    return crc % 16384;
}

/* If the name has a hash tag, only the tag counts: the text between the first opening brace and the next closing one,
 * unless that text is empty. */
unsigned fake_ClusterKeySlot(RedisModuleString *key) {
    const char *open = memchr(key->bytes, '{', key->len);
    if (open != NULL) {
        const char *tag = open + 1, *close = memchr(tag, '}', key->len - (size_t)(tag - key->bytes));
        if (close != NULL && close > tag) return slot_of(tag, (size_t)(close - tag));
    }
    return slot_of(key->bytes, key->len);
}
