/* This file records what a call does apart from its reply: replication, WATCH, events, the log. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "_cgo_export.h"

static void word_of(fake_list *list, const RedisModuleString *s) {
    fake_word(list, s->bytes, s->len);
}

/* Copies the words at once, so that the module may free its strings. */
int fake_Replicate(RedisModuleCtx *ctx, const char *command, const char *format, ...) {
    if (!fake_knows(command)) return API_ERR;
    if (ctx->command == NULL) fake_fault("replicated %s outside of a command", command);
    va_list args;
    va_start(args, format);
    fake_words *words = fake_read_words(command, format, args);
    va_end(args);
    if (words == NULL) return API_ERR;
    fake_list *list = &fake.list[FAKE_EFFECTS];
    for (int i = 0; i < words->argc; i++) word_of(list, words->argv[i]);
    fake_end(list);
    fake_free_words(words);
    return API_OK;
}

void fake_signal(const RedisModuleString *key) {
    word_of(&fake.list[FAKE_SIGNALS], key);
    fake_end(&fake.list[FAKE_SIGNALS]);
}

int fake_SignalModifiedKey(RedisModuleCtx *ctx, RedisModuleString *key) {
    (void)ctx;
    fake_signal(key);
    return API_OK;
}

static void hear(const char *event, const RedisModuleString *key) {
    for (const RedisModuleKey *open = fake.open; open != NULL; open = open->next) {
        const RedisModuleString *name = open->name;
        if (open->ctx != &fake.contexts[fake.depth - 1]) continue; /* of an outer call */
        if (name->len != key->len || memcmp(name->bytes, key->bytes, key->len) != 0)
            fake_fault("the event %s of %s while %s is open", event, key->bytes, name->bytes);
    }
    if (!fake.listens || fake.hears) return;
    fake.hears = 1;
    fakeHear((char *)event, (char *)key->bytes, key->len);
    fake.hears = 0;
}

void fake_inner_event(const char *event, const RedisModuleString *key) {
    int listens = fake.listens;
    if (listens < 2) fake.listens = 0;
    hear(event, key);
    fake.listens = listens;
}

void fake_event(int class, const char *event, const RedisModuleString *key) {
    char number[FAKE_DECIMAL];
    fake_list *list = &fake.list[FAKE_EVENTS];
    fake_word(list, number, fake_decimal(number, class));
    fake_word(list, event, strlen(event));
    word_of(list, key);
    fake_end(list);
    hear(event, key);
}

int fake_NotifyKeyspaceEvent(RedisModuleCtx *ctx, int class, const char *event, RedisModuleString *key) {
    if (ctx == NULL) return API_ERR;
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
    fake_word(&fake.list[FAKE_LOG], line, strlen(line));
    fake_end(&fake.list[FAKE_LOG]);
}
