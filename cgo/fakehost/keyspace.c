/* Keys: what stands at them, when they expire, and the handles of open ones. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

static fake_entry **bucket_of(const char *name, size_t len) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return &fake.buckets[hash % FAKE_BUCKETS];
}

static int same(const fake_text *text, const char *bytes, size_t len) {
    return text->len == len && (len == 0 || memcmp(text->bytes, bytes, len) == 0);
}

fake_entry *fake_find(const char *name, size_t len) {
    fake_entry *entry = *bucket_of(name, len);
    while (entry != NULL && !same(&entry->name, name, len)) entry = entry->next;
    return entry;
}

fake_entry *fake_add(const char *name, size_t len, int type) {
    fake_entry *entry = calloc(1, sizeof *entry), **bucket = bucket_of(name, len);
    if (entry == NULL) abort();
    fake_append(&entry->name, name, len);
    entry->type = type;
    entry->expire = NO_EXPIRE;
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

void fake_remove(fake_entry *entry) {
    fake_entry **link = bucket_of(entry->name.bytes, entry->name.len);
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    for (size_t i = 0; i < entry->num_fields; i++) {
        fake_drop(&entry->fields[i].name);
        fake_drop(&entry->fields[i].value);
    }
    free(entry->fields);
    for (size_t i = 0; i < entry->num_members; i++) fake_drop(&entry->members[i].text);
    free(entry->members);
    fake_drop(&entry->name);
    fake_drop(&entry->text);
    free(entry);
}

fake_entry *fake_walk(const fake_entry *after) {
    if (after != NULL && after->next != NULL) return after->next;
    size_t i = 0;
    if (after != NULL) i = (size_t)(bucket_of(after->name.bytes, after->name.len) - fake.buckets) + 1;
    while (i < FAKE_BUCKETS && fake.buckets[i] == NULL) i++;
    return i < FAKE_BUCKETS ? fake.buckets[i] : NULL;
}

void fake_put(const char *name, size_t len, int type, const char *text, size_t text_len) {
    fake_entry *entry = fake_find(name, len);
    if (entry != NULL) fake_remove(entry);
    entry = fake_add(name, len, type);
    fake_append(&entry->text, text, text_len);
}

/* A key still stands at the instant of its expiry. Whoever opens it later makes a master
 * delete it, and tell its replicas. */
static fake_entry *look_up(RedisModuleString *name) {
    fake_entry *entry = fake_find(name->bytes, name->len);
    if (entry == NULL || entry->expire == NO_EXPIRE || fake.now_us / 1000 <= entry->expire) return entry;
    fake_remove(entry);
    fake_event(1 << 8, "expired", name);
    fake_signal(name);
    fake_word(&fake.list[FAKE_EFFECTS], "DEL", 3);
    fake_word(&fake.list[FAKE_EFFECTS], name->bytes, name->len);
    fake_end(&fake.list[FAKE_EFFECTS]);
    return NULL;
}

/* What the server has not seen in the words it has not checked: a user might not be
 * allowed to use it, another node of a cluster might have it. */
static int declared(const RedisModuleCtx *ctx, const RedisModuleString *name) {
    for (int i = 0; i < ctx->num_keys; i++) {
        const RedisModuleString *key = ctx->keys[i];
        if (key == name || (key->len == name->len && memcmp(key->bytes, name->bytes, key->len) == 0)) return 1;
    }
    return 0;
}

RedisModuleKey *fake_OpenKey(RedisModuleCtx *ctx, RedisModuleString *name, int mode) {
    if (!declared(ctx, name)) fake_fault("opened %s, which the server does not see in the words", name->bytes);
    fake.opened++;
    if (mode & KEY_WRITE) fake.opened_to_write++;
    fake_entry *entry = look_up(name);
    if (entry == NULL && !(mode & KEY_WRITE)) return NULL;
    RedisModuleKey *key = malloc(sizeof *key);
    if (key == NULL) abort();
    name->refs++;
    *key = (RedisModuleKey){.ctx = ctx, .name = name, .entry = entry, .mode = mode};
    fake.handles++;
    return key;
}

void fake_CloseKey(RedisModuleKey *key) {
    if (key == NULL) return;
    if (fake_find(key->name->bytes, key->name->len) != key->entry)
        fake_fault("closed a key that another call had changed meanwhile");
    int implicit = !(key->ctx->module->options & OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    if (implicit && key->mode & KEY_WRITE) fake_signal(key->name);
    fake_release(key->name);
    free(key);
    fake.handles--;
}

int fake_KeyType(RedisModuleKey *key) {
    return key == NULL || key->entry == NULL ? TYPE_EMPTY : key->entry->type;
}

size_t fake_ValueLength(RedisModuleKey *key) {
    switch (fake_KeyType(key)) {
    case TYPE_EMPTY: return 0;
    case TYPE_STRING: return key->entry->text.len;
    case TYPE_HASH: return key->entry->num_fields;
    case TYPE_ZSET: return key->entry->num_members;
    default: return 1; /* the other kinds have no elements here */
    }
}

int fake_may_write(const RedisModuleKey *key, const char *what) {
    if (key->mode & KEY_WRITE) return 1;
    fake_fault("%s of a key that is open for reading", what);
    return 0;
}

int fake_DeleteKey(RedisModuleKey *key) {
    if (!fake_may_write(key, "DeleteKey")) return API_ERR;
    if (key->entry != NULL) fake_remove(key->entry);
    key->entry = NULL;
    return API_OK;
}

long long fake_GetAbsExpire(RedisModuleKey *key) {
    return key->entry == NULL ? NO_EXPIRE : key->entry->expire;
}

int fake_SetAbsExpire(RedisModuleKey *key, long long at) {
    if (!fake_may_write(key, "SetAbsExpire") || key->entry == NULL || (at < 0 && at != NO_EXPIRE)) return API_ERR;
    key->entry->expire = at;
    return API_OK;
}

/* Gives a string other memory, as the server may: who keeps a pointer to the old one will
 * be found out. */
static void move_text(fake_text *text) {
    fake_text moved = {0};
    fake_append(&moved, text->bytes, text->len);
    fake_drop(text);
    *text = moved;
}

char *fake_StringDMA(RedisModuleKey *key, size_t *len, int mode) {
    static const char nothing[] = ""; /* read-only, so that whoever writes to it stops */
    *len = 0;
    if (mode & KEY_WRITE && !fake_may_write(key, "StringDMA to write")) return NULL;
    if (key->entry == NULL) return (char *)nothing;
    if (key->entry->type != TYPE_STRING) return NULL;
    if (mode & KEY_WRITE) move_text(&key->entry->text);
    *len = key->entry->text.len;
    return key->entry->text.bytes;
}

/* Makes the string if there is nothing; fills it up with zeroes. */
int fake_StringTruncate(RedisModuleKey *key, size_t len) {
    static const char zero = '\0';
    if (!fake_may_write(key, "StringTruncate")) return API_ERR;
    if (key->entry == NULL) {
        if (len == 0) return API_OK;
        key->entry = fake_add(key->name->bytes, key->name->len, TYPE_STRING);
    }
    if (key->entry->type != TYPE_STRING) return API_ERR;
    fake_text *text = &key->entry->text;
    move_text(text);
    while (text->len < len) fake_append(text, &zero, 1);
    text->len = len;
    text->bytes[len] = '\0';
    return API_OK;
}
