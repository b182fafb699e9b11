/* This file keeps the keys: their content, their expiry, and the handles of open keys. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

static int same(const fake_text *text, const char *bytes, size_t len) {
    return text->len == len && (len == 0 || memcmp(text->bytes, bytes, len) == 0);
}

fake_entry *fake_find(const char *name, size_t len) {
    fake_entry *entry = fake.keys;
    while (entry != NULL && !same(&entry->name, name, len)) entry = entry->next;
    return entry;
}

fake_entry *fake_add(const char *name, size_t len, int type) {
    fake_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) abort();
    fake_append(&entry->name, name, len);
    entry->type = type;
    entry->expire = NO_EXPIRE;
    entry->next = fake.keys;
    fake.keys = entry;
    return entry;
}

fake_element *fake_find_element(const fake_entry *entry, const char *name, size_t len) {
    for (size_t i = 0; i < entry->num; i++) {
        if (same(&entry->elements[i].name, name, len)) return &entry->elements[i];
    }
    return NULL;
}

fake_element *fake_insert(fake_entry *entry, size_t at, const char *name, size_t len) {
    if (entry->num == entry->room) {
        entry->room = entry->room ? 2 * entry->room : 4;
        entry->elements = realloc(entry->elements, entry->room * sizeof *entry->elements);
        if (entry->elements == NULL) abort();
    }
    fake_element *element = &entry->elements[at];
    memmove(element + 1, element, (entry->num++ - at) * sizeof *element);
    *element = (fake_element){0};
    fake_append(&element->name, name, len);
    return element;
}

void fake_remove_element(fake_entry *entry, fake_element *element) {
    fake_drop(&element->name);
    fake_drop(&element->value);
    size_t after = --entry->num - (size_t)(element - entry->elements);
    memmove(element, element + 1, after * sizeof *element);
}

/* A handle of the key would point to freed memory. */
void fake_remove(fake_entry *entry) {
    for (RedisModuleKey *open = fake.open; open != NULL; open = open->next) {
        if (open->entry != entry) continue;
        fake_fault("%s was removed while it was open", open->name->bytes);
        open->entry = NULL;
    }
    fake_entry **link = &fake.keys;
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    while (entry->num > 0) fake_remove_element(entry, &entry->elements[entry->num - 1]);
    free(entry->elements);
    fake_drop(&entry->name);
    fake_drop(&entry->text);
    free(entry);
}

/* A key still exists at the very millisecond of its expiry. Later, the first access to the key
 * makes a master delete it and replicate the deletion. */
fake_entry *fake_look_up(RedisModuleString *name) {
    fake_entry *entry = fake_find(name->bytes, name->len);
    if (entry == NULL || entry->expire == NO_EXPIRE || fake.now_us / 1000 <= entry->expire) return entry;
    fake_event(FAKE_INNER, "unlink", name);
    fake_remove(entry);
    fake_event(1 << 8, "expired", name);
    fake_signal(name);
    RedisModuleString *del[] = {fake_new_string("DEL", 3), name};
    fake_effect(2, del);
    fake_release(del[0]);
    return NULL;
}

/* The server checks only those keys that it sees in the words. The user may have no right to any
 * other key, and another node of the cluster may hold it. */
static int declared(const RedisModuleCtx *ctx, const RedisModuleString *name) {
    for (int i = 0; !ctx->asks_for_keys && i < ctx->keys.num; i++) {
        const RedisModuleString *key = ctx->argv[ctx->keys.at[i]];
        if (key == name || (key->len == name->len && memcmp(key->bytes, name->bytes, key->len) == 0)) return 1;
    }
    return 0;
}

void fake_check_declared(const RedisModuleCtx *ctx, const RedisModuleString *name, const char *what) {
    if (!declared(ctx, name) && !fake_was_checked(name))
        fake_fault("%s of %s, which the server does not see in the words", what, name->bytes);
}

RedisModuleKey *fake_OpenKey(RedisModuleCtx *ctx, RedisModuleString *name, int mode) {
    fake_check_declared(ctx, name, "OpenKey");
    fake.counts[FAKE_OPENED]++;
    fake.counts[FAKE_STEPS]++;
    if (mode & KEY_WRITE) fake.counts[FAKE_FOR_WRITING]++;
    fake_entry *entry = fake_look_up(name);
    if (entry == NULL && !(mode & KEY_WRITE)) {
        fake_event(FAKE_INNER, "keymiss", name);
        return NULL;
    }
    RedisModuleKey *key = malloc(sizeof *key);
    if (key == NULL) abort();
    name->refs++;
    *key = (RedisModuleKey){.next = fake.open, .ctx = ctx, .name = name, .entry = entry, .mode = mode};
    fake.open = key;
    fake.alive[FAKE_HANDLES]++;
    return key;
}

void fake_CloseKey(RedisModuleKey *key) {
    if (key == NULL) return;
    int implicit = !(key->ctx->module->options & OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    if (implicit && key->mode & KEY_WRITE) fake_signal(key->name);
    fake_release(key->name);
    RedisModuleKey **link = &fake.open;
    while (*link != key) link = &(*link)->next;
    *link = key->next;
    free(key);
    fake.alive[FAKE_HANDLES]--;
}

int fake_KeyType(RedisModuleKey *key) {
    return key == NULL || key->entry == NULL ? TYPE_EMPTY : key->entry->type;
}

size_t fake_ValueLength(RedisModuleKey *key) {
    switch (fake_KeyType(key)) {
    case TYPE_EMPTY: return 0;
    case TYPE_STRING: return key->entry->text.len;
    case TYPE_HASH:
    case TYPE_ZSET: return key->entry->num;
    default: return 1; /* the host keeps no elements of other types */
    }
}

int fake_may_write(const RedisModuleKey *key, const char *what) {
    if (key->mode & KEY_WRITE) return 1;
    fake_fault("%s of a key that is open for reading", what);
    return 0;
}

void fake_delete(RedisModuleKey *key) {
    if (key->entry == NULL) return;
    fake_entry *entry = key->entry;
    fake.counts[FAKE_STEPS] += (long)entry->num;
    fake_event(FAKE_INNER, "unlink", key->name);
    key->entry = NULL;
    fake_remove(entry);
}

static void grow(fake_text *text, size_t len) {
    static const char zero = '\0';
    while (text->len < len) fake_append(text, &zero, 1);
}

void fake_create(RedisModuleKey *key, int type, size_t len) {
    if (fake_find(key->name->bytes, key->name->len) != NULL)
        fake_fault("created a key that is there already: the server would stop");
    key->entry = fake_add(key->name->bytes, key->name->len, type);
    grow(&key->entry->text, len);
    fake_event(FAKE_INNER, "new", key->name);
}

int fake_DeleteKey(RedisModuleKey *key) {
    if (!fake_may_write(key, "DeleteKey")) return API_ERR;
    fake_delete(key);
    return API_OK;
}

long long fake_GetAbsExpire(RedisModuleKey *key) {
    return key->entry == NULL ? NO_EXPIRE : key->entry->expire;
}

int fake_SetAbsExpire(RedisModuleKey *key, long long at) {
    if (!fake_may_write(key, "SetAbsExpire") || key->entry == NULL || (at < 0 && at != NO_EXPIRE)) return API_ERR;
    if (fake_find(key->name->bytes, key->name->len) != key->entry)
        fake_fault("SetAbsExpire of a key that is not there: the server would stop");
    key->entry->expire = at;
    return API_OK;
}

/* Moves a string to other memory, as the server may when it makes the string raw. A sanitizer then finds a
 * module that uses a pointer to the old memory. */
static void move(fake_entry *entry) {
    fake_text moved = {0};
    fake_append(&moved, entry->text.bytes, entry->text.len);
    fake_drop(&entry->text);
    entry->text = moved;
}

char *fake_StringDMA(RedisModuleKey *key, size_t *len, int mode) {
    static const char nothing[] = ""; /* read-only memory: a write stops the process */
    *len = 0;
    if (mode & KEY_WRITE && !fake_may_write(key, "StringDMA to write")) return NULL;
    if (key->entry == NULL) return (char *)nothing;
    if (key->entry->type != TYPE_STRING) return NULL;
    fake.counts[FAKE_LOOKED]++;
    move(key->entry);
    *len = key->entry->text.len;
    return key->entry->text.bytes;
}

/* Creates the string if the key does not exist. Zeroes fill the new bytes. */
int fake_StringTruncate(RedisModuleKey *key, size_t len) {
    if (!fake_may_write(key, "StringTruncate")) return API_ERR;
    if (key->entry == NULL) {
        if (len > 0) fake_create(key, TYPE_STRING, len);
        return API_OK;
    }
    if (key->entry->type != TYPE_STRING) return API_ERR;
    move(key->entry);
    fake_text *text = &key->entry->text;
    grow(text, len);
    text->len = len;
    text->bytes[len] = '\0';
    return API_OK;
}
