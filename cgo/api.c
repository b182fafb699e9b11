#include "api.h"

#include <stdio.h>

api_table api;

typedef int (*get_api_func)(const char *name, void *pointer_to_function);

/* The first word of a context is the function that finds all other functions. The server
 * promises nothing else about a context. */
static get_api_func get_api(RedisModuleCtx *ctx) {
    return *(get_api_func *)ctx;
}

int api_has(RedisModuleCtx *ctx, const char *name) {
    void *found = NULL;
    return get_api(ctx)(name, &found) == API_OK;
}

enum { OPTIONAL = 0, REQUIRED = 1, VALKEY = 2 };

int api_resolve(RedisModuleCtx *ctx) {
    get_api_func get = get_api(ctx);
    const char *missing = NULL, *since = NULL;
#define API_RESOLVE(needed, release, result, name, parameters)                                    \
    api.name = NULL;                                                                              \
    if (get(needed == VALKEY ? "ValkeyModule_" #name : "RedisModule_" #name, &api.name) != API_OK) { \
        api.name = NULL;                                                                          \
        if (needed == REQUIRED && missing == NULL) missing = #name, since = release;              \
    }
    API_FUNCTIONS(API_RESOLVE)
#undef API_RESOLVE
    if (missing == NULL) return API_OK;
    const char *text = "gothrottle not loaded: this server lacks the function RedisModule_%s, "
                       "which came with Redis %s";
    if (api.Log != NULL) {
        api.Log(ctx, "warning", text, missing, since);
    } else {
        fprintf(stderr, text, missing, since);
        fputc('\n', stderr);
    }
    return API_ERR;
}

RedisModuleCallReply *api_expect(RedisModuleCallReply *reply, int type) {
    if (reply == NULL || api.CallReplyType(reply) == type) return reply;
    api.FreeCallReply(reply);
    return NULL;
}
