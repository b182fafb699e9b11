/* This file implements INFO. */
#include "fake.h"

#include <strings.h>

struct RedisModuleInfoCtx {
    const fake_module *module;
    const char *wanted; /* a section, or NULL for all sections */
    fake_text *text;
    int in_section;
};

void fake_info(const char *section, fake_text *text) {
    if (fake.module == NULL || fake.module->info == NULL) return;
    RedisModuleInfoCtx ctx = {.module = fake.module, .wanted = section, .text = text};
    fake.module->info(&ctx, 0);
}

int fake_RegisterInfoFunc(RedisModuleCtx *ctx, RedisModuleInfoFunc info) {
    ctx->module->info = info;
    return API_OK;
}

/* This host has no events of the server. */
int fake_SubscribeToServerEvent(RedisModuleCtx *ctx, api_event event, RedisModuleEventCallback callback) {
    (void)ctx, (void)event, (void)callback;
    return API_OK;
}

int fake_InfoAddSection(RedisModuleInfoCtx *ctx, const char *name) {
    fake_text full = {0};
    fake_printf(&full, "%s%s%s", ctx->module->name, *name ? "_" : "", name);
    ctx->in_section = ctx->wanted == NULL || strcasecmp(ctx->wanted, full.bytes) == 0 ||
                      strcasecmp(ctx->wanted, ctx->module->name) == 0;
    if (ctx->in_section) fake_printf(ctx->text, "# %s\r\n", full.bytes);
    fake_drop(&full);
    return ctx->in_section ? API_OK : API_ERR;
}

int fake_InfoAddFieldCString(RedisModuleInfoCtx *ctx, const char *name, const char *value) {
    if (!ctx->in_section) return API_ERR;
    fake_printf(ctx->text, "%s_%s:%s\r\n", ctx->module->name, name, value);
    return API_OK;
}

int fake_InfoAddFieldLongLong(RedisModuleInfoCtx *ctx, const char *name, long long value) {
    if (!ctx->in_section) return API_ERR;
    fake_printf(ctx->text, "%s_%s:%lld\r\n", ctx->module->name, name, value);
    return API_OK;
}
