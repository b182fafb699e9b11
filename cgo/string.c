/* Strings: fixed windows, and redis-cell's limiters. */
#include "shim.h"

#include <string.h>

/* Copies a string by GET into new_text, which has room for each string that may be ours. Unlike StringDMA, GET never
 * makes the server store the string in another way. Returns 0 if the server does not run GET: an administrator may have
 * renamed the command. The key is closed meanwhile, since a command filter of another module may change it, and stays
 * closed after a copy. A key that has changed is not read. */
static SHIM_RARE int copy_string(RedisModuleCtx *ctx, shim_key *key) {
    _Static_assert(sizeof key->new_text >= SHIM_MAX_QUOTA_LEN, "new_text is too short");
    shim_close_key(key);
    RedisModuleCallReply *reply = api_expect(api.Call(ctx, "GET", "s", key->name), REPLY_STRING);
    size_t len = 0;
    const char *bytes = reply != NULL ? api.CallReplyStringPtr(reply, &len) : NULL;
    int copied = bytes != NULL && len <= sizeof key->new_text;
    if (copied) {
        memcpy(key->new_text, bytes, len);
        key->text = (shim_text){key->new_text, len};
    }
    if (reply != NULL) api.FreeCallReply(reply);
    if (copied) return 1;
    key->handle = api.OpenKey(ctx, key->name, KEY_READ);
    return api.KeyType(key->handle) != SHIM_STRING || (int64_t)api.ValueLength(key->handle) != key->length;
}

/* StringDMA makes the server store a short or numeric string in another way. So only a string of a length that ours
 * have is looked at. A command that takes a key of any kind changes none, so it reads a copy. */
void shim_load_string(RedisModuleCtx *ctx, shim_key *key) {
    int quota = key->length >= SHIM_MIN_QUOTA_LEN && key->length <= SHIM_MAX_QUOTA_LEN;
    int adopted = key->length == SHIM_ADOPTED_LEN;
    int any = key->wants == SHIM_ANY;
    if (!(quota && (any || key->wants == SHIM_STRING)) && !(adopted && (any || key->wants == SHIM_HASH))) return;
    if (any && copy_string(ctx, key)) return;
    key->text.bytes = api.StringDMA(key->handle, &key->text.len, KEY_READ);
}

/* Writes the string and sets the expiry. One command replicates both. */
void shim_apply_string(RedisModuleCtx *ctx, shim_key *key) {
    size_t len = (size_t)key->new_len, room;
    if (key->kind != SHIM_STRING || key->text.len != len) api.StringTruncate(key->handle, len);
    if (!shim_is_made(ctx, key, SHIM_STRING)) return;
    char *bytes = api.StringDMA(key->handle, &room, KEY_WRITE);
    if (room != len) return; /* another module has changed the key in its event new */
    memcpy(bytes, key->new_text, len);
    key->events |= SHIM_EVENT_SET;
    if (shim_set_expiry(key)) {
        api.Replicate(ctx, "SET", "sbcl", key->name, key->new_text, len, "PXAT", (long long)key->expire_to);
    } else {
        api.Replicate(ctx, "SET", "sbc", key->name, key->new_text, len, "KEEPTTL");
    }
}
