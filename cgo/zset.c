/* Sorted sets: what Go may ask of sliding windows and leases, and adding and removing entries.
 *
 * A score is a time with its sign turned, so the newest entry is the first. A sorted set of up to 128 entries is one
 * piece of memory that the server walks from its front. To add the newest entry at the front takes no walk. At the
 * other end the walk takes 1.4 us (25 % of a call of "GO.WINDOW 100" in make bench). */
#include "shim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Appends an entry to those of a key and takes over the string. */
static void append(shim_key *key, RedisModuleString *string, double score) {
    if (key->entries.len == key->entries.cap)
        key->entries.at = shim_grow(key->entries.at, sizeof *key->entries.at, &key->entries.cap, SHIM_STACK_ENTRIES);
    shim_entry *e = &key->entries.at[key->entries.len++];
    e->member.bytes = api.StringPtrLen(string, &e->member.len);
    e->string = string;
    e->drop = 0;
    double time = -score;
    e->bad = !(time >= 0 && time <= 9007199254740992.0 && time == (double)(int64_t)time);
    e->time_us = e->bad ? 0 : (int64_t)time;
}

/* Appends up to most entries, from the current one of the key's range on, and ends the range. The server copies each
 * member. A member that is too long to be ours makes the call an error, so no further member is copied. */
static void take(shim_key *key, int64_t most, int (*next)(RedisModuleKey *)) {
    for (; most > 0 && !api.ZsetRangeEndReached(key->handle); most--) {
        double score;
        RedisModuleString *string = api.ZsetRangeCurrentElement(key->handle, &score);
        append(key, string, score);
        if (key->entries.at[key->entries.len - 1].member.len > SHIM_MAX_MEMBER) break;
        if (most > 1) next(key->handle);
    }
    api.ZsetRangeStop(key->handle);
}

void shim_zset_newest(shim_call *call, int64_t k, int64_t most) {
    shim_key *key = &call->keys.at[k];
    api.ZsetFirstInScoreRange(key->handle, -INFINITY, INFINITY, 0, 0);
    take(key, most, api.ZsetRangeNext);
}

int shim_zset_first(shim_call *call, int64_t k, int64_t after_us) {
    shim_key *key = &call->keys.at[k];
    int64_t before = key->entries.len;
    api.ZsetLastInScoreRange(key->handle, -INFINITY, -(double)after_us, 0, 1);
    take(key, 1, api.ZsetRangePrev);
    return key->entries.len > before;
}

void shim_zset_oldest(shim_call *call, int64_t k, int64_t up_to_us, int64_t most) {
    shim_key *key = &call->keys.at[k];
    api.ZsetLastInScoreRange(key->handle, -(double)up_to_us, INFINITY, 0, 0);
    take(key, most, api.ZsetRangePrev);
}

/* Appends the member of a reply of ZRANGE WITHSCORES. Returns whether there is one. */
static int append_ranked(shim_key *key, RedisModuleCallReply *reply) {
    if (api.CallReplyLength(reply) != 2) return 0;
    size_t len;
    const char *bytes = api.CallReplyStringPtr(api.CallReplyArrayElement(reply, 0), &len);
    if (bytes == NULL) return 0;
    RedisModuleString *string = api.CreateString(NULL, bytes, len);
    double score = NAN;
    api.ZsetScore(key->handle, string, &score);
    append(key, string, score);
    return 1;
}

/* The module API can neither find a member by rank nor count a range. The server's own commands
 * do both in O(log N). The server may refuse to run them. */
int shim_zset_rank(shim_call *call, int64_t k, int64_t rank) {
    shim_key *key = &call->keys.at[k];
    long long at = rank;
    shim_close_keys(call);
    RedisModuleCallReply *reply =
        api_expect(api.Call(call->ctx, "ZRANGE", "sllc", key->name, at, at, "WITHSCORES"), REPLY_ARRAY);
    int found = shim_reopen_keys(call) ? 0 : SHIM_CHANGED;
    if (reply == NULL) return found;
    if (found == 0) found = append_ranked(key, reply);
    api.FreeCallReply(reply);
    return found;
}

int64_t shim_zset_count_after(shim_call *call, int64_t k, int64_t after_us) {
    shim_key *key = &call->keys.at[k];
    char bound[32];
    snprintf(bound, sizeof bound, "(%lld", -(long long)after_us);
    shim_close_keys(call);
    RedisModuleCallReply *reply =
        api_expect(api.Call(call->ctx, "ZCOUNT", "scc", key->name, "-inf", bound), REPLY_INTEGER);
    int64_t n = -1;
    if (reply != NULL) {
        n = api.CallReplyInteger(reply);
        api.FreeCallReply(reply);
    }
    return shim_reopen_keys(call) ? n : SHIM_CHANGED;
}

/* Makes a member, which is a prefix and a text. The caller frees it. */
static RedisModuleString *make_member(int prefix, const char *bytes, size_t len) {
    char stack[64], *member = stack;
    if (len + 1 > sizeof stack) member = api.Alloc(len + 1);
    member[0] = (char)prefix;
    memcpy(member + 1, bytes, len);
    RedisModuleString *string = api.CreateString(NULL, member, len + 1);
    if (member != stack) api.Free(member);
    return string;
}

int shim_zset_find(shim_call *call, int64_t k, int prefix, const char *bytes, size_t len) {
    shim_key *key = &call->keys.at[k];
    RedisModuleString *string = make_member(prefix, bytes, len);
    double score;
    int found = api.ZsetScore(key->handle, string, &score) == API_OK;
    if (found) {
        append(key, string, score);
    } else {
        api.FreeString(NULL, string);
    }
    return found;
}

static void release(shim_key *key, int64_t keep) {
    while (key->entries.len > keep) api.FreeString(NULL, key->entries.at[--key->entries.len].string);
}

void shim_release_entries(shim_call *call, int64_t k, int64_t keep) {
    release(&call->keys.at[k], keep);
}

void shim_free_entries(shim_key *key) {
    release(key, 0);
    if (key->entries.cap > SHIM_STACK_ENTRIES) api.Free(key->entries.at);
}

static void add_member(RedisModuleCtx *ctx, shim_call *call, shim_key *key) {
    shim_text text = {key->new_text, (size_t)key->new_len};
    if (key->add_word) text = call->args.at[key->add_word];
    RedisModuleString *member = make_member(key->add_prefix, text.bytes, text.len);
    int flags = 0;
    api.ZsetAdd(key->handle, -(double)key->add_time_us, member, &flags);
    /* A lease renewed at the same instant changes nothing. */
    if (flags & (ZADD_ADDED | ZADD_UPDATED) && shim_is_made(ctx, key, SHIM_ZSET)) {
        api.Replicate(ctx, "ZADD", "sls", key->name, -(long long)key->add_time_us, member);
        key->events |= SHIM_EVENT_ZADD;
    }
    api.FreeString(NULL, member);
}

/* Adds a member, then removes others. The other order could empty the sorted set, and the server
 * would delete the key with its expiry. */
void shim_apply_zset(RedisModuleCtx *ctx, shim_call *call, shim_key *key) {
    if (key->add_prefix) add_member(ctx, call, key);
    RedisModuleString *stack[SHIM_STACK_ENTRIES + 1], **dropped = stack;
    if (key->entries.len > SHIM_STACK_ENTRIES)
        dropped = api.Alloc(sizeof *dropped * (size_t)(key->entries.len + 1));
    size_t num_dropped = 1;
    dropped[0] = key->name;
    for (int64_t i = 0; i < key->entries.len; i++) {
        shim_entry *e = &key->entries.at[i];
        if (!e->drop) continue;
        api.ZsetRem(key->handle, e->string, NULL);
        dropped[num_dropped++] = e->string;
    }
    if (num_dropped > 1) {
        api.Replicate(ctx, "ZREM", "v", dropped, num_dropped);
        key->events |= SHIM_EVENT_ZREM;
        if (api.KeyType(key->handle) == TYPE_EMPTY) key->events |= SHIM_EVENT_EMPTIED;
    }
    if (dropped != stack) api.Free(dropped);
}
