/* Strings: fixed windows, and redis-cell's limiters. */
#include "shim.h"

#include <string.h>

/* StringDMA makes the server store a short or numeric string in another way. So only a string of
 * a length that ours have is looked at. */
void shim_load_string(shim_key *key) {
    int quota = key->length >= SHIM_MIN_QUOTA_LEN && key->length <= SHIM_MAX_QUOTA_LEN;
    int adopted = key->length == SHIM_ADOPTED_LEN;
    if ((quota && (key->wants == SHIM_STRING || key->wants == SHIM_ANY)) ||
        (adopted && (key->wants == SHIM_HASH || key->wants == SHIM_ANY))) key->text.bytes = api.StringDMA(key->handle, &key->text.len, KEY_READ);
}

/* Writes the string and sets the expiry. One command replicates both. */
void shim_apply_string(RedisModuleCtx *ctx, shim_key *key) {
    size_t len = (size_t)key->new_len;
    if (key->kind != SHIM_STRING || key->text.len != len) api.StringTruncate(key->handle, len);
    memcpy(api.StringDMA(key->handle, &len, KEY_WRITE), key->new_text, len);
    key->events |= SHIM_EVENT_SET;
    if (shim_set_expiry(key)) {
        api.Replicate(ctx, "SET", "sbcl", key->name, key->new_text, len, "PXAT",
                      (long long)key->expire_to);
    } else {
        api.Replicate(ctx, "SET", "sbc", key->name, key->new_text, len, "KEEPTTL");
    }
}
