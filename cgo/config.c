/* The module's configurations. The server reads and sets them through CONFIG, its configuration
 * file and MODULE LOADEX. It prefixes their names with the module's name and a dot.
 *
 * A CONFIG SET of several settings sets one after the other, and after an error it sets the earlier ones back. It calls
 * apply only if all are right. So a setter must not change what calls see: the counters would be lost. Redis 8 may apply
 * some, meet a wrong one, and then set and apply the earlier values again: goApply knows them. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

/* The text of the policies that were set last; NULL before the first load. The string is ours: the
 * server copies what it reads, and set_policies frees the old string. The string outlives an unload;
 * the next load sets the policies again. */
static RedisModuleString *policies;

static RedisModuleString *get_policies(const char *name, void *data) {
    (void)name, (void)data;
    return policies;
}

/* The server owns the value. The error becomes the server's, and the server frees it. The text that
 * Go returns has no zero in it, and is freed here. */
static int set_policies(const char *name, RedisModuleString *value, void *data, RedisModuleString **error) {
    (void)name, (void)data;
    if (shim_forked) {
        static const char text[] = "a forked process cannot read policies";
        *error = api.CreateString(NULL, text, strlen(text));
        return API_ERR;
    }
    size_t len;
    const char *bytes = api.StringPtrLen(value, &len);
    struct goSetPolicies_return set = goSetPolicies((char *)bytes, len);
    RedisModuleString *text = api.CreateString(NULL, set.r0, strlen(set.r0));
    free(set.r0);
    if (!set.r1) {
        *error = text;
        return API_ERR;
    }
    if (policies != NULL) api.FreeString(NULL, policies);
    policies = text;
    return API_OK;
}

/* The setting, and its value in force. */
static long long top_keys;
long long shim_top_keys;

static long long get_top_keys(const char *name, void *data) {
    (void)name, (void)data;
    return top_keys;
}

/* The server has checked the range. */
static int set_top_keys(const char *name, long long value, void *data, RedisModuleString **error) {
    (void)name, (void)data, (void)error;
    top_keys = value;
    return API_OK;
}

static int apply(RedisModuleCtx *ctx, void *data, RedisModuleString **error) {
    (void)ctx, (void)data, (void)error;
    if (shim_forked) return API_OK;
    int64_t calls = 0;
    for (int i = 0; i < shim_loaded->num_commands; i++) {
        const shim_command *c = &shim_loaded->commands[i];
        calls += c->errors;
        for (int j = 0; j < SHIM_OUTCOMES; j++) calls += c->outcomes[j];
    }
    goApply((int)top_keys, shim_wall_us(), calls);
    shim_top_keys = top_keys;
    return API_OK;
}

int shim_load_config(RedisModuleCtx *ctx) {
    /* Without a default value Redis 7.0 reads through NULL. */
    if (api.RegisterStringConfig(ctx, "policies", "", CONFIG_DEFAULT, get_policies, set_policies, apply,
                                 NULL) != API_OK ||
        api.RegisterNumericConfig(ctx, "top-keys", 0, CONFIG_DEFAULT, 0, SHIM_MAX_TOP_KEYS,
                                  get_top_keys, set_top_keys, apply, NULL) != API_OK) {
        api.Log(ctx, "warning", "gothrottle not loaded: the server refused its configuration");
        return API_ERR;
    }
    if (api.LoadConfigs(ctx) != API_OK) { /* the server has logged why */
        api.Log(ctx, "warning", "gothrottle not loaded: a value of its configuration is wrong");
        return API_ERR;
    }
    return apply(ctx, NULL, NULL); /* LoadConfigs does not call it */
}
