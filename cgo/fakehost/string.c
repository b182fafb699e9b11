/* This file hands out strings and memory. */
#include "fake.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

RedisModuleString *fake_new_string(const char *bytes, size_t len) {
    RedisModuleString *s = malloc(sizeof *s + len + 1);
    if (s == NULL) abort();
    s->refs = 1;
    s->counted = 0;
    s->len = len;
    if (len > 0) memcpy(s->bytes, bytes, len);
    s->bytes[len] = '\0';
    return s;
}

void fake_release(RedisModuleString *s) {
    if (--s->refs > 0) return;
    if (s->counted) fake.strings--;
    free(s);
}

RedisModuleString *fake_give_string(const char *bytes, size_t len) {
    RedisModuleString *s = fake_new_string(bytes, len);
    s->counted = 1;
    fake.strings++;
    return s;
}

RedisModuleString *fake_CreateString(RedisModuleCtx *ctx, const char *bytes, size_t len) {
    (void)ctx;
    return fake_give_string(bytes, len);
}

RedisModuleString *fake_CreateStringFromLongLong(RedisModuleCtx *ctx, long long n) {
    char text[FAKE_DECIMAL];
    (void)ctx;
    return fake_give_string(text, fake_decimal(text, n));
}

void fake_FreeString(RedisModuleCtx *ctx, RedisModuleString *s) {
    (void)ctx;
    if (!s->counted && s->refs == 1) {
        fake_fault("freed a string of the server's: %s", s->bytes);
        return;
    }
    fake_release(s);
}

const char *fake_StringPtrLen(const RedisModuleString *s, size_t *len) {
    if (len != NULL) *len = s->len;
    return s->bytes;
}

/* Reads a canonical decimal: no plus sign, no leading zero, no -0, no space. */
int fake_number(const char *text, size_t len, long long *n) {
    size_t i = 0;
    int negative = len > 1 && text[0] == '-';
    if (negative) i++;
    if (len == 1 && text[0] == '0') {
        *n = 0;
        return API_OK;
    }
    if (i == len || text[i] < '1' || text[i] > '9') return API_ERR;
    unsigned long long value = 0, most = negative ? 1ULL << 63 : LLONG_MAX;
    for (; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') return API_ERR;
        unsigned digit = (unsigned)(text[i] - '0');
        if (value > (most - digit) / 10) return API_ERR;
        value = value * 10 + digit;
    }
    *n = negative ? (long long)(0 - value) : (long long)value;
    return API_OK;
}

int fake_StringToLongLong(const RedisModuleString *s, long long *n) {
    return fake_number(s->bytes, s->len, n);
}

void *fake_give_block(size_t size) {
    void *block = malloc(size > 0 ? size : 1);
    if (block == NULL) abort();
    memset(block, 0xa5, size); /* the module must not rely on zeroes */
    fake.blocks++;
    return block;
}

void *fake_Alloc(size_t size) {
    return fake_give_block(size);
}

void fake_Free(void *block) {
    if (block == NULL) return;
    fake.blocks--;
    free(block);
}
