/* This file writes replies in RESP2, and INFO. */
#include "fake.h"

#include <string.h>

static int put_number(fake_text *reply, char kind, long long n) {
    fake_printf(reply, "%c%lld\r\n", kind, n);
    return API_OK;
}

int fake_ReplyWithLongLong(RedisModuleCtx *ctx, long long n) {
    return put_number(&ctx->reply, ':', n);
}

int fake_ReplyWithArray(RedisModuleCtx *ctx, long len) {
    return put_number(&ctx->reply, '*', len);
}

/* A map is an array of keys and values, as a server sends it in RESP2. */
int fake_ReplyWithMap(RedisModuleCtx *ctx, long len) {
    return put_number(&ctx->reply, '*', 2 * len);
}

int fake_ReplyWithString(RedisModuleCtx *ctx, RedisModuleString *string) {
    put_number(&ctx->reply, '$', (long long)string->len);
    fake_append(&ctx->reply, string->bytes, string->len);
    fake_append(&ctx->reply, "\r\n", 2);
    return API_OK;
}

int fake_ReplyWithNull(RedisModuleCtx *ctx) {
    return put_number(&ctx->reply, '$', -1);
}

int fake_ReplyWithError(RedisModuleCtx *ctx, const char *text) {
    if (strpbrk(text, "\r\n") != NULL) fake_fault("an error reply of several lines: %s", text);
    fake_printf(&ctx->reply, "-%s\r\n", text);
    return API_OK;
}

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
