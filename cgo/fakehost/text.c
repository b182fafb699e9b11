/* This file implements growing buffers and lists of words. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void reserve(fake_text *text, size_t more) {
    if (text->len + more + 1 <= text->room) return;
    text->room = 2 * (text->len + more + 1);
    text->bytes = realloc(text->bytes, text->room);
    if (text->bytes == NULL) abort();
}

void fake_append(fake_text *text, const void *bytes, size_t len) {
    reserve(text, len);
    if (len > 0) memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    text->bytes[text->len] = '\0';
}

static void append_format(fake_text *text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    reserve(text, (size_t)len);
    vsnprintf(text->bytes + text->len, (size_t)len + 1, format, again);
    text->len += (size_t)len;
    va_end(again);
}

void fake_printf(fake_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    append_format(text, format, args);
    va_end(args);
}

void fake_drop(fake_text *text) {
    free(text->bytes);
    *text = (fake_text){0};
}

void fake_word(fake_list *list, const char *bytes, size_t len) {
    uint32_t length = (uint32_t)len;
    fake_append(list, &length, sizeof length);
    fake_append(list, bytes, len);
}

void fake_end(fake_list *list) {
    uint32_t end = FAKE_END;
    fake_append(list, &end, sizeof end);
}

void fake_record(fake_list *list, const char *bytes, size_t len) {
    fake_word(list, bytes, len);
    fake_end(list);
}

/* Reads the next word of a list, and nothing at the end of a record. Returns whether there was a word. */
static int next_word(const fake_list *list, size_t *at, const char **bytes, size_t *len) {
    uint32_t n;
    memcpy(&n, list->bytes + *at, sizeof n);
    *at += sizeof n;
    if (n == FAKE_END) return 0;
    *bytes = list->bytes + *at;
    *len = n;
    *at += n;
    return 1;
}

int fake_has_bytes(const fake_list *list, const char *bytes, size_t len) {
    const char *found;
    size_t n;
    for (size_t at = 0; at < list->len;) {
        if (next_word(list, &at, &found, &n) && n == len && strncasecmp(found, bytes, n) == 0) return 1;
    }
    return 0;
}

int fake_has(const fake_list *list, const char *word) {
    return fake_has_bytes(list, word, strlen(word));
}

void fake_find_value(const fake_list *list, const char *name, const char **value, size_t *value_len) {
    for (size_t at = 0; at < list->len;) {
        const char *found, *its_value;
        size_t len, its_len;
        if (!next_word(list, &at, &found, &len) || !next_word(list, &at, &its_value, &its_len)) return;
        if (len != strlen(name) || memcmp(found, name, len) != 0) continue;
        *value = its_value;
        *value_len = its_len;
    }
}

void fake_fault(const char *format, ...) {
    fake_text text = {0};
    va_list args;
    va_start(args, format);
    append_format(&text, format, args);
    va_end(args);
    fake_record(&fake.list[FAKE_FAULTS], text.bytes, text.len);
    fake_drop(&text);
}
