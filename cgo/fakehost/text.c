/* This file implements growing buffers, and hands records to Go. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

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

void fake_fault(const char *format, ...) {
    va_list args;
    va_start(args, format);
    append_format(&fake.faults, format, args);
    va_end(args);
    fake_append(&fake.faults, "\n", 1);
}

/* Go copies the bytes. */
void fake_note_key(int list, const RedisModuleString *key) {
    fakeNote(list, (char *)key->bytes, key->len);
}

void fake_note(int list, const char *format, ...) {
    fake_text text = {0};
    va_list args;
    va_start(args, format);
    append_format(&text, format, args);
    va_end(args);
    fakeNote(list, text.bytes, text.len);
    fake_drop(&text);
}

int fake_has_key(int list, const RedisModuleString *key) {
    return fakeHas(list, (char *)key->bytes, key->len);
}

int fake_has(int list, const char *word) {
    return fakeHas(list, (char *)word, strlen(word));
}

char *fake_setting(const char *full_name) {
    return fakeSetting((char *)full_name);
}
