/* This file knows one user, who may use all keys except those that the test forbids. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct RedisModuleUser {
    const char *name;
};
static RedisModuleUser alice = {"alice"};

int fake_GetServerVersion(void) {
    return fake.is[FAKE_VERSION];
}

int fake_GetSelectedDb(RedisModuleCtx *ctx) {
    return fake.is[FAKE_DATABASE];
}

int fake_GetContextFlags(RedisModuleCtx *ctx) {
    const int master = 1 << 2; /* the module must look at its own bit only */
    return fake.is[FAKE_CLUSTER] ? master | CTX_FLAGS_CLUSTER : master;
}

RedisModuleString *fake_GetCurrentUserName(RedisModuleCtx *ctx) {
    if (fake.is[FAKE_NO_USER] && fake.is[FAKE_VERSION] < 0x080100) fake_fault("this server reads through NULL without a user");
    return fake.is[FAKE_NO_USER] ? NULL : fake_give_string(alice.name, strlen(alice.name));
}

RedisModuleUser *fake_GetModuleUserFromUserName(RedisModuleString *name) {
    if (fake.is[FAKE_FORGOTTEN] || strcmp(name->bytes, alice.name) != 0) return NULL;
    fake.alive[FAKE_USERS]++;
    return &alice;
}

int fake_FreeModuleUser(RedisModuleUser *user) {
    fake.alive[FAKE_USERS]--;
    return API_OK;
}

/* The question must be about the command that runs now, with a word for each word that the command needs. */
static int check(RedisModuleUser *user, RedisModuleString **argv, int argc) {
    const RedisModuleCommand *command = fake.depth > 0 ? fake.contexts[fake.depth - 1].command : NULL;
    if (user == NULL || command == NULL || argc < abs(command->arity) || strcasecmp(command->name, argv[0]->bytes) != 0) {
        fake_fault("a permission of %s with %d words", argv[0]->bytes, argc);
        return API_ERR;
    }
    const RedisModuleString *key = argv[1];
    fake_note_key(FAKE_CHECKS, key);
    return fake_has_key(FAKE_FORBIDDEN, key) ? API_ERR : API_OK;
}

/* As Valkey 9.1 for a user who may use some databases only. */
int fake_ACLCheckCommandPermissions(RedisModuleUser *user, RedisModuleString **argv, int argc) {
    return fake.is[FAKE_VALKEY] ? API_ERR : check(user, argv, argc);
}

int fake_ACLCheckPermissions(RedisModuleUser *user, RedisModuleString **argv, int argc, int database, int *reason) {
    if (!fake.is[FAKE_VALKEY] || database != fake.is[FAKE_DATABASE] || reason != NULL) fake_fault("ACLCheckPermissions of database %d", database);
    return check(user, argv, argc);
}

int fake_ACLAddLogEntry(RedisModuleCtx *ctx, RedisModuleUser *user, RedisModuleString *object, int reason) {
    if (reason != ACL_LOG_KEY) fake_fault("ACLAddLogEntry with the reason %d", reason);
    fake_note(FAKE_ACL_LOG, "%s %s", user->name, object->bytes);
    return API_OK;
}

/* If the server does not ask the command for its keys, the command must ask whether the user may use each key but the first,
 * unless there is no user. TestAccess_refused shows that it obeys the answers. */
int fake_was_checked(const RedisModuleString *key) {
    return fake.is[FAKE_NO_USER] || fake_has_key(FAKE_CHECKS, key);
}

/* In this host the first byte of a key says its slot. */
unsigned fake_ClusterKeySlot(RedisModuleString *key) {
    return (unsigned char)key->bytes[0];
}
