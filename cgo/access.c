/* Access to the further keys of a call: permissions, and the slot of a cluster.
 *
 * The server checks both for the keys that it sees. Where it does not ask a command for its keys
 * (see asks_on_main_thread in load.c), it sees only the first key. */
#include "shim.h"

#include <errno.h>
#include <string.h>

static const char no_permission[] = "NOPERM No permissions to access a key";
static const char cross_slot[] = "CROSSSLOT Keys in request don't hash to the same slot";
static const char try_again[] = "TRYAGAIN Multiple keys request during rehashing of slot";

/* Whether a user may make a call of these words. Valkey 9.1 can permit some databases only, and then
 * refuses a question without a database. */
static int may_call(RedisModuleCtx *ctx, RedisModuleUser *user, RedisModuleString **words, int num_words) {
    if (api.ACLCheckPermissions == NULL) return api.ACLCheckCommandPermissions(user, words, num_words) == API_OK;
    return api.ACLCheckPermissions(user, words, num_words, api.GetSelectedDb(ctx), NULL) == API_OK;
}

/* Whether a user may run the command on the further keys. The server is asked for a call with the key
 * in the first place. To ask for the key alone is not enough: a selector permits its keys to its own
 * commands only. The first key that the user may not use goes to the server's ACL log. */
static int may_use_keys(RedisModuleCtx *ctx, RedisModuleUser *user, const shim_command *command,
                        const shim_call *call, RedisModuleString **argv) {
    RedisModuleString *words[command->min_arity]; /* a call has at least these; the server looks at two */
    memcpy(words, argv, sizeof words);
    for (int64_t k = 1; k < call->keys.len; k++) {
        words[1] = argv[call->keys.at[k].word + 1];
        if (may_call(ctx, user, words, command->min_arity)) continue;
        api.ACLAddLogEntry(ctx, user, words[1], ACL_LOG_KEY);
        return 0;
    }
    return 1;
}

/* Whether the call may have a user. Valkey before 8.1 reads through NULL if it is asked for the name of a user that the
 * call does not have, such as the call of another module. There a call as the user shows it: the server finds out that
 * there is no user before it finds out that there is no such command. */
static SHIM_RARE int may_have_user(RedisModuleCtx *ctx) {
    if (api.GetServerVersion() >= 0x080100) return 1;
    errno = 0;
    RedisModuleCallReply *reply = api.Call(ctx, "gothrottle", "C");
    if (reply != NULL) api.FreeCallReply(reply);
    return errno != ENOTSUP;
}

/* Whether the user who runs the command may use the further keys. A call without a user is the
 * server's own. The user and its name are ours to free. */
static int has_permission(RedisModuleCtx *ctx, const shim_command *command, const shim_call *call,
                          RedisModuleString **argv) {
    RedisModuleString *name = may_have_user(ctx) ? api.GetCurrentUserName(ctx) : NULL;
    if (name == NULL) return 1;
    RedisModuleUser *user = api.GetModuleUserFromUserName(name);
    api.FreeString(NULL, name);
    if (user == NULL) return 0; /* the user was deleted meanwhile */
    int may = may_use_keys(ctx, user, command, call, argv);
    api.FreeModuleUser(user);
    return may;
}

/* Whether the server refuses all commands of modules, also one without a key. Valkey 9.1 does so
 * until its restart after a script has made a call with keys of two slots: see
 * docs/upstream/valkey-rm-call.md. Without PING there is no way to know. */
static int refuses_all(RedisModuleCtx *ctx) {
    errno = 0;
    RedisModuleCallReply *reply = api_expect(api.Call(ctx, "PING", ""), REPLY_STRING);
    if (reply == NULL) return errno != ENOENT;
    api.FreeCallReply(reply);
    return 0;
}

/* The server sent the call here by the first key. All keys must have the slot of that key, and all
 * must be at this node: while a slot moves, some of them may be at another node. For such keys the
 * server refuses its own commands, so EXISTS shows it. If the server refuses all commands, the call
 * goes on: otherwise no call of several keys would ever run again at this node. */
static const char *check_slot(RedisModuleCtx *ctx, const shim_call *call, RedisModuleString **argv) {
    RedisModuleString *names[SHIM_CLAUSES];
    for (int64_t k = 0; k < call->keys.len; k++) {
        names[k] = argv[call->keys.at[k].word + 1];
        if (api.ClusterKeySlot(names[k]) != api.ClusterKeySlot(names[0])) return cross_slot;
    }
    static int warned; /* since EXISTS worked last */
    RedisModuleCallReply *reply =
        api_expect(api.Call(ctx, "EXISTS", "v", names, (size_t)call->keys.len), REPLY_INTEGER);
    if (reply != NULL) {
        api.FreeCallReply(reply);
        warned = 0;
        return NULL;
    }
    if (!refuses_all(ctx)) return try_again;
    if (!warned++)
        api.Log(ctx, "warning",
                "the server refuses all commands of modules, so GO.ALL cannot see which keys have moved: "
                "restart this node before you move slots by MIGRATE");
    return NULL;
}

const char *shim_check_access(RedisModuleCtx *ctx, const shim_command *command, const shim_call *call,
                              RedisModuleString **argv) {
    if (shim_server_asks || call->keys.len < 2) return NULL;
    if (!has_permission(ctx, command, call, argv)) return no_permission;
    return api.GetContextFlags(ctx) & CTX_FLAGS_CLUSTER ? check_slot(ctx, call, argv) : NULL;
}
