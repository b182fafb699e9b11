/* This file writes replies in RESP2. */
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

int fake_WrongArity(RedisModuleCtx *ctx) {
    fake_printf(&ctx->reply, "-ERR wrong number of arguments for '%s' command\r\n", ctx->command->name);
    return API_OK;
}
