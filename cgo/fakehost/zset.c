/* This file implements sorted sets, as sorted arrays, and the walks along them. */
#include "fake.h"

#include <math.h>
#include <string.h>

static int compare_bytes(const char *a, size_t len_a, const char *b, size_t len_b) {
    size_t len = len_a < len_b ? len_a : len_b;
    int order = len > 0 ? memcmp(a, b, len) : 0;
    return order != 0 ? order : (len_a > len_b) - (len_a < len_b);
}

/* Returns the index of the first member above this score, or, if at, of the first one that is not below it. */
static size_t first_above(const fake_entry *entry, double score, int at) {
    size_t i = 0;
    while (i < entry->num && (entry->elements[i].score < score || (!at && entry->elements[i].score == score))) i++;
    return i;
}

void fake_push_member(fake_entry *entry, double score, const char *text, size_t len) {
    fake_insert(entry, entry->num, text, len)->score = score;
}

static void put_member(fake_entry *entry, double score, const char *text, size_t len) {
    fake_element *old = fake_find_element(entry, text, len);
    if (old != NULL) fake_remove_element(entry, old);
    size_t at = first_above(entry, score, 1);
    for (; at < entry->num && entry->elements[at].score == score; at++) {
        const fake_text *other = &entry->elements[at].name;
        if (compare_bytes(other->bytes, other->len, text, len) > 0) break;
    }
    fake_insert(entry, at, text, len)->score = score;
}

static int is_zset(const RedisModuleKey *key) {
    return key->entry != NULL && key->entry->type == TYPE_ZSET;
}

/* A change may move the memory that a range of the server points into. */
static int may_change(const RedisModuleKey *key, const char *what) {
    if (key->range.active) fake_fault("%s while a range of the key is open", what);
    return fake_may_write(key, what) && (key->entry == NULL || key->entry->type == TYPE_ZSET);
}

int fake_ZsetAdd(RedisModuleKey *key, double score, RedisModuleString *member, int *flags) {
    fake.counts[FAKE_STEPS]++;
    if (flags != NULL && *flags != 0) fake_fault("ZsetAdd: the fake host has no flags");
    if (!may_change(key, "ZsetAdd") || isnan(score)) return API_ERR;
    if (key->entry == NULL) fake_create(key, TYPE_ZSET, 0);
    const fake_element *old = fake_find_element(key->entry, member->bytes, member->len);
    if (flags != NULL) *flags = old == NULL ? ZADD_ADDED : old->score != score ? ZADD_UPDATED : 0;
    put_member(key->entry, score, member->bytes, member->len);
    return API_OK;
}

int fake_ZsetRem(RedisModuleKey *key, RedisModuleString *member, int *deleted) {
    fake.counts[FAKE_STEPS]++;
    if (!may_change(key, "ZsetRem")) return API_ERR;
    fake_element *m = key->entry ? fake_find_element(key->entry, member->bytes, member->len) : NULL;
    if (m != NULL) fake_remove_element(key->entry, m);
    if (deleted != NULL) *deleted = m != NULL;
    if (key->entry != NULL && key->entry->num == 0) fake_delete(key);
    return API_OK;
}

int fake_ZsetScore(RedisModuleKey *key, RedisModuleString *member, double *score) {
    fake.counts[FAKE_STEPS]++;
    if (!is_zset(key)) return API_ERR;
    const fake_element *m = fake_find_element(key->entry, member->bytes, member->len);
    if (m == NULL) return API_ERR;
    *score = m->score;
    return API_OK;
}

static int start(RedisModuleKey *key, double min, double max, int min_excluded, int max_excluded, int last) {
    fake.counts[FAKE_STEPS]++;
    if (!is_zset(key)) return API_ERR;
    size_t from = first_above(key->entry, min, !min_excluded), to = first_above(key->entry, max, max_excluded);
    key->range = (fake_range){.active = 1, .from = from, .to = to, .at = last ? to - 1 : from, .ended = from >= to};
    return API_OK;
}

int fake_ZsetFirstInScoreRange(RedisModuleKey *key, double min, double max, int min_excluded, int max_excluded) {
    return start(key, min, max, min_excluded, max_excluded, 0);
}

int fake_ZsetLastInScoreRange(RedisModuleKey *key, double min, double max, int min_excluded, int max_excluded) {
    return start(key, min, max, min_excluded, max_excluded, 1);
}

/* Whether a range of the key is open and has members. */
static int has_members(const RedisModuleKey *key) {
    return is_zset(key) && key->range.active && key->range.from < key->range.to;
}

RedisModuleString *fake_ZsetRangeCurrentElement(RedisModuleKey *key, double *score) {
    fake.counts[FAKE_STEPS]++;
    if (!has_members(key)) return NULL;
    const fake_element *m = &key->entry->elements[key->range.at];
    if (score != NULL) *score = m->score;
    return fake_give_string(m->name.bytes, m->name.len);
}

static int move_to(RedisModuleKey *key, size_t at, int ended) {
    fake.counts[FAKE_STEPS]++;
    if (!has_members(key)) return 0;
    key->range.ended = ended;
    if (!ended) key->range.at = at;
    return !ended;
}

int fake_ZsetRangeNext(RedisModuleKey *key) {
    return move_to(key, key->range.at + 1, key->range.at + 1 == key->range.to);
}

int fake_ZsetRangePrev(RedisModuleKey *key) {
    return move_to(key, key->range.at - 1, key->range.at == key->range.from);
}

int fake_ZsetRangeEndReached(RedisModuleKey *key) {
    return !is_zset(key) || !key->range.active || key->range.ended;
}

void fake_ZsetRangeStop(RedisModuleKey *key) {
    key->range = (fake_range){0};
}
