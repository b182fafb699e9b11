/* Sorted sets: what Go may ask of sliding windows and leases, and adding and removing entries.
 *
 * A score is a time with its sign turned, so the newest entry is the first. Scores above 0 count slots. A sorted set of up to 128 entries is one
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
    e->bad = !(fabs(time) <= 9007199254740992.0 && time == (double)(int64_t)time);
    e->time_us = e->bad ? 0 : (int64_t)time;
}

/* Appends up to most entries, from the current one of the key's range on, and ends the range. An entry whose time is before
 * least_us is the last. The server copies each member. A member that is too long to be ours makes the call an error, so no
 * further member is copied. */
static void take(shim_key *key, int64_t most, int64_t least_us, int (*next)(RedisModuleKey *)) {
    for (; most > 0 && !api.ZsetRangeEndReached(key->handle); most--) {
        double score;
        RedisModuleString *string = api.ZsetRangeCurrentElement(key->handle, &score);
        append(key, string, score);
        const shim_entry *e = &key->entries.at[key->entries.len - 1];
        if (e->member.len > SHIM_MAX_MEMBER || e->time_us < least_us) break;
        if (most > 1) next(key->handle);
    }
    api.ZsetRangeStop(key->handle);
}

void shim_zset_newest(shim_call *call, int64_t k, int64_t most) {
    shim_key *key = &call->keys.at[k];
    api.ZsetFirstInScoreRange(key->handle, -INFINITY, INFINITY, 0, 0);
    take(key, most, INT64_MIN, api.ZsetRangeNext);
}

int shim_zset_first(shim_call *call, int64_t k, int64_t after_us) {
    shim_key *key = &call->keys.at[k];
    int64_t before = key->entries.len;
    api.ZsetLastInScoreRange(key->handle, -INFINITY, -(double)after_us, 0, 1);
    take(key, 1, INT64_MIN, api.ZsetRangePrev);
    return key->entries.len > before;
}

void shim_zset_oldest(shim_call *call, int64_t k, int64_t after_us, int64_t up_to_us, int64_t most) {
    shim_key *key = &call->keys.at[k];
    int bounded = after_us != INT64_MIN; /* commands.NoTime */
    api.ZsetLastInScoreRange(key->handle, -(double)up_to_us, bounded ? -(double)after_us : INFINITY, 0, bounded);
    take(key, most, up_to_us < 0 ? INT64_MIN : 0, api.ZsetRangePrev);
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
    if (len > 0) memcpy(member + 1, bytes, len);
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

void shim_zset_put(shim_call *call, int64_t k, int prefix, const char *bytes, size_t len, int64_t time_us) {
    shim_key *key = &call->keys.at[k];
    append(key, make_member(prefix, bytes, len), -(double)time_us);
    key->entries.at[key->entries.len - 1].drop = 2;
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

/* Adds a member, or gives it another score. Returns whether that changed anything: a lease renewed at the same instant does
 * not. */
static int add(shim_key *key, int64_t time_us, RedisModuleString *member) {
    int flags = 0;
    api.ZsetAdd(key->handle, (double)-time_us, member, &flags); /* a score of 0 has no sign */
    return flags & (ZADD_ADDED | ZADD_UPDATED);
}

/* Makes the member of the call. */
static RedisModuleString *own_member(const shim_call *call, const shim_key *key) {
    shim_text text = {key->new_text, (size_t)key->new_len};
    if (key->add_word) text = call->args.at[key->add_word];
    return make_member(key->add_prefix, text.bytes, text.len);
}

static void add_member(RedisModuleCtx *ctx, const shim_call *call, shim_key *key) {
    RedisModuleString *member = own_member(call, key);
    if (add(key, key->add_time_us, member) && shim_is_made(ctx, key, SHIM_ZSET)) {
        api.Replicate(ctx, "ZADD", "sls", key->name, -(long long)key->add_time_us, member);
        key->events |= SHIM_EVENT_ZADD;
    }
    api.FreeString(NULL, member);
}

/* Adds the member of the call, if it has one, and those of shim_zset_put: the slots of a lease, and the sum of slots. */
static SHIM_RARE void add_members(RedisModuleCtx *ctx, const shim_call *call, shim_key *key) {
    static const char *const formats[] = {NULL, "sls", "slsls", "slslsls"};
    RedisModuleString *member = key->add_prefix ? own_member(call, key) : NULL, *added[3] = {member};
    long long scores[3] = {-(long long)key->add_time_us};
    int n = member != NULL && add(key, key->add_time_us, member);
    int made = n == 0 || shim_is_made(ctx, key, SHIM_ZSET);
    for (int64_t i = 0; made && i < key->entries.len; i++) {
        const shim_entry *e = &key->entries.at[i];
        if (e->drop != 2 || !add(key, e->time_us, e->string) || n == 3) continue;
        scores[n] = -(long long)e->time_us;
        added[n++] = e->string;
    }
    if (made && n > 0) {
        api.Replicate(ctx, "ZADD", formats[n], key->name, scores[0], added[0], scores[1], added[1], scores[2], added[2]);
        key->events |= SHIM_EVENT_ZADD;
    }
    if (member != NULL) api.FreeString(NULL, member);
}

/* Adds members, then removes others. The other order could empty the sorted set, and the server
 * would delete the key with its expiry. The entries of shim_zset_put are the last ones. */
void shim_apply_zset(RedisModuleCtx *ctx, shim_call *call, shim_key *key) {
    if (key->entries.len > 0 && key->entries.at[key->entries.len - 1].drop == 2) {
        add_members(ctx, call, key);
    } else if (key->add_prefix) {
        add_member(ctx, call, key);
    }
    RedisModuleString *stack[SHIM_STACK_ENTRIES + 1], **dropped = stack;
    if (key->entries.len > SHIM_STACK_ENTRIES)
        dropped = api.Alloc(sizeof *dropped * (size_t)(key->entries.len + 1));
    size_t num_dropped = 1;
    dropped[0] = key->name;
    for (int64_t i = 0; i < key->entries.len; i++) {
        shim_entry *e = &key->entries.at[i];
        if (e->drop != 1) continue;
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
