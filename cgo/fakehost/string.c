/* This file hands out strings and memory. */
#include "fake.h"

#include <stdio.h>
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
    if (s->counted) fake.alive[FAKE_STRINGS]--;
    free(s);
}

RedisModuleString *fake_give_string(const char *bytes, size_t len) {
    RedisModuleString *s = fake_new_string(bytes, len);
    s->counted = 1;
    fake.alive[FAKE_STRINGS]++;
    return s;
}

RedisModuleString *fake_CreateString(RedisModuleCtx *ctx, const char *bytes, size_t len) {
    return fake_give_string(bytes, len);
}

RedisModuleString *fake_CreateStringFromLongLong(RedisModuleCtx *ctx, long long n) {
    char text[24];
    return fake_give_string(text, (size_t)sprintf(text, "%lld", n));
}

void fake_FreeString(RedisModuleCtx *ctx, RedisModuleString *s) {
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
int fake_StringToLongLong(const RedisModuleString *s, long long *n) {
    char canonical[24];
    *n = strtoll(s->bytes, NULL, 10);
    size_t len = (size_t)sprintf(canonical, "%lld", *n);
    return s->len == len && memcmp(s->bytes, canonical, len) == 0 ? API_OK : API_ERR;
}

void *fake_Alloc(size_t size) {
    void *block = malloc(size > 0 ? size : 1);
    if (block == NULL) abort();
    memset(block, 0xa5, size); /* the module must not rely on zeroes */
    fake.alive[FAKE_BLOCKS]++;
    return block;
}

void fake_Free(void *block) {
    if (block == NULL) return;
    fake.alive[FAKE_BLOCKS]--;
    free(block);
}
