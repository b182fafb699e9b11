/* This file implements INFO. */
#include "fake.h"

struct RedisModuleInfoCtx {
    const fake_module *module;
    fake_text *text;
};

void fake_info(fake_text *text) {
    RedisModuleInfoCtx ctx = {.module = fake.module, .text = text};
    fake.module->info(&ctx, 0);
}

int fake_RegisterInfoFunc(RedisModuleCtx *ctx, RedisModuleInfoFunc info) {
    ctx->module->info = info;
    return API_OK;
}

/* This host has no events of the server. */
int fake_SubscribeToServerEvent(RedisModuleCtx *ctx, api_event event, RedisModuleEventCallback callback) {
    return API_OK;
}

int fake_InfoAddSection(RedisModuleInfoCtx *ctx, const char *name) {
    fake_printf(ctx->text, "# %s%s%s\r\n", ctx->module->name, *name ? "_" : "", name);
    return API_OK;
}

int fake_InfoAddFieldCString(RedisModuleInfoCtx *ctx, const char *name, const char *value) {
    fake_printf(ctx->text, "%s_%s:%s\r\n", ctx->module->name, name, value);
    return API_OK;
}

int fake_InfoAddFieldLongLong(RedisModuleInfoCtx *ctx, const char *name, long long value) {
    fake_printf(ctx->text, "%s_%s:%lld\r\n", ctx->module->name, name, value);
    return API_OK;
}
