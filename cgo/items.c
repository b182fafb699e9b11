/* Replies of any form: Go gives them part by part. */
#include "shim.h"

/* The array and its texts are ours until shim_free_items. */
void shim_put_item(shim_call *call, int32_t kind, int64_t n, const char *text, size_t len) {
    if (call->items.len == call->items.cap)
        call->items.at = shim_grow(call->items.at, sizeof *call->items.at, &call->items.cap, 0);
    shim_item *item = &call->items.at[call->items.len++];
    item->kind = kind;
    item->n = n;
    item->text = kind == SHIM_ITEM_TEXT ? api.CreateString(NULL, text, len) : NULL;
}

void shim_reply_items(RedisModuleCtx *ctx, const shim_call *call) {
    for (int64_t i = 0; i < call->items.len; i++) {
        const shim_item *item = &call->items.at[i];
        switch (item->kind) {
        case SHIM_ITEM_MAP: api.ReplyWithMap(ctx, (long)item->n); break;
        case SHIM_ITEM_ARRAY: api.ReplyWithArray(ctx, (long)item->n); break;
        case SHIM_ITEM_INTEGER: api.ReplyWithLongLong(ctx, item->n); break;
        case SHIM_ITEM_TEXT: api.ReplyWithString(ctx, item->text); break;
        default: api.ReplyWithNull(ctx);
        }
    }
}

void shim_free_items(shim_call *call) {
    for (int64_t i = 0; i < call->items.len; i++) {
        if (call->items.at[i].text != NULL) api.FreeString(NULL, call->items.at[i].text);
    }
    api.Free(call->items.at);
}
