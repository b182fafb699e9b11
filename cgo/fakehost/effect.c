/* This file records what a call does apart from its reply: replication, WATCH, events, the log. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "_cgo_export.h"

void fake_effect(int argc, RedisModuleString *const *argv) {
    for (int i = 0; i < argc; i++) fakeEffect(i == 0, (char *)argv[i]->bytes, argv[i]->len);
}

/* Copies the words at once, so that the module may free its strings. */
int fake_Replicate(RedisModuleCtx *ctx, const char *command, const char *format, ...) {
    if (!fake_knows(command)) return API_ERR;
    if (ctx->command == NULL) fake_fault("replicated %s outside of a command", command);
    va_list args;
    va_start(args, format);
    fake_words *words = fake_read_words(command, format, args);
    va_end(args);
    fake_effect(words->argc, words->argv);
    fake_free_words(words);
    return API_OK;
}

void fake_signal(const RedisModuleString *key) {
    fake_note_key(FAKE_SIGNALS, key);
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

void fake_event(int class, const char *event, const RedisModuleString *key) {
    fake_check_open(event, key);
    fakeHear(class, (char *)event, (char *)key->bytes, key->len);
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
    fake_note(FAKE_LOG, "%s: %s", level, line);
}
