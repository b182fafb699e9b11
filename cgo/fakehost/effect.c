/* This file records what a call does apart from its reply: replication, WATCH, events, the log. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "_cgo_export.h"

/* Copies the words at once, so that the module may free its strings. */
int fake_Replicate(RedisModuleCtx *ctx, const char *command, const char *format, ...) {
    if (!fake_knows(command)) return API_ERR;
    if (ctx->command == NULL) fake_fault("replicated %s outside of a command", command);
    va_list args;
    va_start(args, format);
    fake_words *words = fake_read_words(command, format, args);
    va_end(args);
    fake_list *list = &fake.list[FAKE_EFFECTS];
    for (int i = 0; i < words->argc; i++) fake_word(list, words->argv[i]->bytes, words->argv[i]->len);
    fake_end(list);
    fake_free_words(words);
    return API_OK;
}

void fake_signal(const RedisModuleString *key) {
    fake_record(&fake.list[FAKE_SIGNALS], key->bytes, key->len);
}

int fake_SignalModifiedKey(RedisModuleCtx *ctx, RedisModuleString *key) {
    fake_signal(key);
    return API_OK;
}

void fake_check_open(const char *event, const RedisModuleString *key) {
    for (const RedisModuleKey *open = fake.open; open != NULL; open = open->next) {
        const RedisModuleString *name = open->name;
        if (open->ctx != &fake.contexts[fake.depth - 1]) continue;
        if (key == NULL || name->len != key->len || memcmp(name->bytes, key->bytes, key->len) != 0)
            fake_fault("%s of %s while %s is open", event, key != NULL ? key->bytes : "any key", name->bytes);
    }
}

void fake_hear(int class, const char *event, const RedisModuleString *key) {
    if (!fake.listens || fake.hears) return;
    fake.hears = 1;
    fakeHear(class, (char *)event, (char *)key->bytes, key->len);
    fake.hears = 0;
}

void fake_event(int class, const char *event, const RedisModuleString *key) {
    fake_list *list = &fake.list[FAKE_EVENTS];
    if (class != FAKE_INNER) {
        char number[24];
        fake_word(list, number, (size_t)sprintf(number, "%d", class));
        fake_word(list, event, strlen(event));
        fake_record(list, key->bytes, key->len);
    }
    fake_check_open(event, key);
    fake_hear(class, event, key);
}

int fake_NotifyKeyspaceEvent(RedisModuleCtx *ctx, int class, const char *event, RedisModuleString *key) {
    fake_event(class, event, key);
    return API_OK;
}

/* The server cuts a line at 1024 bytes, including the module's name. */
void fake_Log(RedisModuleCtx *ctx, const char *level, const char *format, ...) {
    char line[1024];
    const char *name = ctx != NULL && ctx->module != NULL ? ctx->module->name : "module";
    int start = snprintf(line, sizeof line, "<%s> ", name);
    va_list args;
    va_start(args, format);
    vsnprintf(line + start, sizeof line - (size_t)start, format, args);
    va_end(args);
    fake_word(&fake.list[FAKE_LOG], level, strlen(level));
    fake_record(&fake.list[FAKE_LOG], line, strlen(line));
}
