/* The lowest layer: the values of a load, the memory of a call, and an open key. */
#include "shim.h"

#include <string.h>

const shim_module *shim_loaded;
int shim_server_asks;
RedisModuleString *shim_fields[SHIM_CELLS][SHIM_FIELDS];

void *shim_grow(void *at, size_t size, int64_t *cap, int64_t on_stack) {
    int64_t old = *cap;
    *cap = old < 8 ? 32 : old * 4;
    void *larger = api.Alloc(size * (size_t)*cap);
    if (old > 0) memcpy(larger, at, size * (size_t)old);
    if (old > on_stack) api.Free(at);
    return larger;
}

void shim_close_key(shim_key *key) {
    api.CloseKey(key->handle); /* unless it is NULL */
    key->handle = NULL;
}

int shim_is_there(RedisModuleCtx *ctx, shim_key *key, int32_t kind) {
    api.CloseKey(key->handle);
    key->handle = api.OpenKey(ctx, key->name, KEY_READ | KEY_WRITE);
    if (api.KeyType(key->handle) == kind) return 1;
    key->expire_from = 0;
    return 0;
}

int shim_set_expiry(shim_key *key) {
    if (key->expire_from == 0) return 0;
    long long at = api.GetAbsExpire(key->handle);
    if (at >= key->expire_from && at <= key->expire_to) return 0;
    api.SetAbsExpire(key->handle, key->expire_to);
    key->events |= SHIM_EVENT_EXPIRE;
    return 1;
}
