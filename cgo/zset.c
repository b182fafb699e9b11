/* What Go may ask of a sorted set. Reads only.
 *
 * A score is a time with its sign turned, so the newest entry is the first. A sorted set
 * of up to 128 entries is one piece of memory that the server walks from its front: to
 * put an entry where the newest ones are costs it nothing there, and 1.4 us (25 % of a call
 * of "GO.WINDOW 100" in make bench) at the other end. */
#include "shim.h"

#include <math.h>
#include <string.h>

/* Appends an entry. Takes over the string. The array starts on shim_run's stack. */
static shim_entry *append(shim_call *call, RedisModuleString *string, double score) {
    if (call->entries.len == call->entries.cap) {
        int64_t cap = call->entries.cap * 4;
        shim_entry *at = api.Alloc(sizeof *at * (size_t)cap);
        memcpy(at, call->entries.at, sizeof *at * (size_t)call->entries.len);
        if (call->entries.cap > SHIM_STACK_ENTRIES) api.Free(call->entries.at);
        call->entries.at = at;
        call->entries.cap = cap;
    }
    shim_entry *e = &call->entries.at[call->entries.len++];
    e->member.bytes = api.StringPtrLen(string, &e->member.len);
    e->string = string;
    e->drop = 0;
    double time = -score;
    e->bad = !(time >= 0 && time <= 9007199254740992.0 && time == floor(time));
    e->time = e->bad ? 0 : (int64_t)time;
    return e;
}

static void append_current(shim_call *call, RedisModuleKey *handle) {
    double score;
    RedisModuleString *string = api.ZsetRangeCurrentElement(handle, &score);
    append(call, string, score);
}

/* Positions the range on the oldest entry with above < time <= upto. */
static RedisModuleKey *seek(shim_call *call, int64_t above, double upto) {
    RedisModuleKey *handle = call->keys.at[0].handle;
    int all = above == INT64_MIN; /* commands.Beginning */
    api.ZsetLastInScoreRange(handle, -upto, all ? INFINITY : -(double)above, 0, !all);
    return handle;
}

/* Takes the n-th entry of the range. */
static int take(shim_call *call, RedisModuleKey *handle, int64_t n, int (*next)(RedisModuleKey *)) {
    while (--n > 0 && !api.ZsetRangeEndReached(handle)) next(handle);
    int found = !api.ZsetRangeEndReached(handle);
    if (found) append_current(call, handle);
    api.ZsetRangeStop(handle);
    return found;
}

int shim_zset_first(shim_call *call, int64_t above, int64_t n) {
    return take(call, seek(call, above, INFINITY), n, api.ZsetRangePrev);
}

int shim_zset_last(shim_call *call, int64_t n) {
    RedisModuleKey *handle = call->keys.at[0].handle;
    api.ZsetFirstInScoreRange(handle, -INFINITY, INFINITY, 0, 0);
    return take(call, handle, n, api.ZsetRangeNext);
}

void shim_zset_head(shim_call *call, int64_t above, int64_t upto, int64_t most) {
    RedisModuleKey *handle = seek(call, above, (double)upto);
    while (most-- > 0 && !api.ZsetRangeEndReached(handle)) {
        append_current(call, handle);
        api.ZsetRangePrev(handle);
    }
    api.ZsetRangeStop(handle);
}

int shim_zset_find(shim_call *call, int prefix, const char *bytes, size_t len) {
    RedisModuleString *string = shim_member(prefix, bytes, len);
    double score;
    int found = api.ZsetScore(call->keys.at[0].handle, string, &score) == API_OK;
    if (found) {
        append(call, string, score);
    } else {
        api.FreeString(NULL, string);
    }
    return found;
}

int64_t shim_zset_count(shim_call *call, int64_t upto) {
    RedisModuleKey *handle = seek(call, INT64_MIN, (double)upto);
    int64_t n = 0;
    for (; !api.ZsetRangeEndReached(handle); n++) api.ZsetRangePrev(handle);
    api.ZsetRangeStop(handle);
    return n;
}

RedisModuleString *shim_member(int prefix, const char *bytes, size_t len) {
    char stack[64], *member = stack;
    if (len + 1 > sizeof stack) member = api.Alloc(len + 1);
    member[0] = (char)prefix;
    memcpy(member + 1, bytes, len);
    RedisModuleString *string = api.CreateString(NULL, member, len + 1);
    if (member != stack) api.Free(member);
    return string;
}

void shim_release_entries(shim_call *call, int64_t keep) {
    while (call->entries.len > keep) api.FreeString(NULL, call->entries.at[--call->entries.len].string);
}

void shim_free_entries(shim_call *call) {
    shim_release_entries(call, 0);
    if (call->entries.cap > SHIM_STACK_ENTRIES) api.Free(call->entries.at);
}
