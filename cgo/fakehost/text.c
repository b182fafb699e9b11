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

/* printf is too slow here: the benchmarks would measure it. */
size_t fake_decimal(char text[FAKE_DECIMAL], long long n) {
    char backward[FAKE_DECIMAL];
    size_t len = 0, at = 0;
    unsigned long long rest = n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n;
    do {
        backward[len++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (n < 0) text[at++] = '-';
    while (len > 0) text[at++] = backward[--len];
    return at;
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

int fake_has(const fake_list *list, const char *word) {
    const char *bytes;
    size_t len, wanted = strlen(word);
    for (size_t at = 0; at < list->len;) {
        if (next_word(list, &at, &bytes, &len) && len == wanted && strncasecmp(bytes, word, len) == 0) return 1;
    }
    return 0;
}

int fake_holds(const fake_list *list, const char *bytes, size_t len) {
    const char *found;
    size_t n;
    for (size_t at = 0; at < list->len;) {
        if (next_word(list, &at, &found, &n) && n == len && memcmp(found, bytes, n) == 0) return 1;
    }
    return 0;
}

int fake_find_pair(const fake_list *list, const char *name, const char **value, size_t *value_len) {
    int found = 0;
    for (size_t at = 0; at < list->len;) {
        const char *first, *second, *none;
        size_t first_len, second_len, no_len;
        if (!next_word(list, &at, &first, &first_len) || !next_word(list, &at, &second, &second_len)) continue;
        next_word(list, &at, &none, &no_len); /* the end of the record */
        if (first_len != strlen(name) || memcmp(first, name, first_len) != 0) continue;
        *value = second;
        *value_len = second_len;
        found = 1;
    }
    return found;
}

void fake_fault(const char *format, ...) {
    fake_text text = {0};
    va_list args;
    va_start(args, format);
    append_format(&text, format, args);
    va_end(args);
    fake_word(&fake.list[FAKE_FAULTS], text.bytes, text.len);
    fake_end(&fake.list[FAKE_FAULTS]);
    fake_drop(&text);
}
