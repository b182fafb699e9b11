/* This file implements hashes. */
#include "fake.h"

#include <stdarg.h>
#include <string.h>

void fake_put_field(fake_entry *entry, const char *name, size_t name_len, const char *value, size_t value_len) {
    fake_element *field = fake_find_element(entry, name, name_len);
    if (field == NULL) field = fake_insert(entry, entry->num, name, name_len);
    field->value.len = 0;
    fake_append(&field->value, value, value_len);
}

/* The module has to free the values. */
int fake_HashGet(RedisModuleKey *key, int flags, ...) {
    if (flags != 0) fake_fault("HashGet: the fake host has no flags");
    if (key->entry != NULL && key->entry->type != TYPE_HASH) return API_ERR;
    va_list args;
    va_start(args, flags);
    RedisModuleString *name;
    while ((name = va_arg(args, RedisModuleString *)) != NULL) {
        RedisModuleString **value = va_arg(args, RedisModuleString **);
        fake_element *field = NULL;
        fake.counts[FAKE_STEPS]++;
        if (key->entry != NULL) field = fake_find_element(key->entry, name->bytes, name->len);
        *value = field ? fake_give_string(field->value.bytes, field->value.len) : NULL;
    }
    va_end(args);
    return API_OK;
}

/* Returns how many of the fields existed before. */
int fake_HashSet(RedisModuleKey *key, int flags, ...) {
    if (flags != 0) fake_fault("HashSet: the fake host has no flags");
    if ((key->entry != NULL && key->entry->type != TYPE_HASH) || !fake_may_write(key, "HashSet")) return 0;
    if (key->entry == NULL) fake_create(key, TYPE_HASH, 0);
    int count = 0;
    va_list args;
    va_start(args, flags);
    RedisModuleString *name;
    while ((name = va_arg(args, RedisModuleString *)) != NULL) {
        RedisModuleString *value = va_arg(args, RedisModuleString *);
        fake_element *field = fake_find_element(key->entry, name->bytes, name->len);
        fake.counts[FAKE_STEPS]++;
        count += field != NULL;
        if (value != HASH_FIELD_DELETE) {
            fake_put_field(key->entry, name->bytes, name->len, value->bytes, value->len);
        } else if (field != NULL) {
            fake_remove_element(key->entry, field);
        }
    }
    va_end(args);
    if (key->entry->num == 0) fake_delete(key);
    return count;
}
