/* This file runs the server's own read commands for RedisModule_Call, and keeps their replies. */
#include "fake.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reply and its elements are one block. Only the first reply of the block can be freed. */
struct RedisModuleCallReply {
    int type, nested;
    long long integer;
    size_t len;     /* of text, or the number of elements */
    fake_text text; /* as in the server, no zero ends the bytes: a line end follows them */
    RedisModuleCallReply *elements;
};

static RedisModuleCallReply *new_reply(int type) {
    RedisModuleCallReply *reply = calloc(1, sizeof *reply);
    if (reply == NULL) abort();
    reply->type = type;
    fake.alive[FAKE_REPLIES]++;
    return reply;
}

static void put_text(RedisModuleCallReply *reply, const char *bytes, size_t len) {
    fake_append(&reply->text, bytes, len);
    fake_append(&reply->text, "\r\n", 2);
    reply->len = len;
}

static RedisModuleCallReply *text_reply(int type, const char *bytes, size_t len) {
    RedisModuleCallReply *reply = new_reply(type);
    put_text(reply, bytes, len);
    return reply;
}

static RedisModuleCallReply *error_reply(const char *text) {
    return text_reply(REPLY_ERROR, text, strlen(text));
}

/* Counts the members from -inf to a bound, which "(" before it excludes. */
static RedisModuleCallReply *zcount(const fake_entry *entry, const char *max) {
    int excluded = *max == '(';
    double bound = strtod(max + excluded, NULL);
    RedisModuleCallReply *reply = new_reply(REPLY_INTEGER);
    for (size_t i = 0; entry != NULL && i < entry->num; i++) {
        double score = entry->elements[i].score;
        reply->integer += excluded ? score < bound : score <= bound;
    }
    return reply;
}

/* Returns a reply of n elements of a type. */
static RedisModuleCallReply *array_reply(size_t n, int type) {
    RedisModuleCallReply *reply = new_reply(REPLY_ARRAY);
    reply->len = n;
    reply->elements = calloc(n + 1, sizeof *reply->elements);
    if (reply->elements == NULL) abort();
    for (size_t i = 0; i < n; i++) reply->elements[i] = (RedisModuleCallReply){.type = type, .nested = 1};
    return reply;
}

/* The one member of a rank, counted from the start. The module does not read the score behind it, which is empty. */
static RedisModuleCallReply *zrange(const fake_entry *entry, RedisModuleString **argv) {
    long long rank;
    fake_StringToLongLong(argv[2], &rank);
    if (entry == NULL || (size_t)rank >= entry->num) return array_reply(0, 0);
    const fake_element *m = &entry->elements[rank];
    RedisModuleCallReply *reply = array_reply(2, REPLY_STRING);
    put_text(&reply->elements[0], m->name.bytes, m->name.len);
    return reply;
}

/* CONFIG GET io-threads. */
static RedisModuleCallReply *config_get(void) {
    if (fake.is[FAKE_IO_THREADS] == 0) return array_reply(0, 0);
    char number[24];
    RedisModuleCallReply *reply = array_reply(2, REPLY_STRING);
    put_text(&reply->elements[0], "io-threads", strlen("io-threads"));
    put_text(&reply->elements[1], number, (size_t)sprintf(number, "%d", fake.is[FAKE_IO_THREADS]));
    return reply;
}

/* A node of a cluster does not run a command that has a key which the node does not hold. */
static RedisModuleCallReply *exists(const fake_words *words) {
    for (int i = 1; i < words->argc; i++) {
        if (fake_has_key(FAKE_ELSEWHERE, words->argv[i])) {
            errno = EPERM;
            return NULL;
        }
    }
    RedisModuleCallReply *reply = new_reply(REPLY_INTEGER);
    for (int i = 1; i < words->argc; i++) reply->integer += fake_look_up(words->argv[i]) != NULL;
    return reply;
}

fake_words *fake_read_words(const char *command, const char *format, va_list args) {
    RedisModuleString **vector = NULL;
    size_t n = strlen(format);
    if (strcmp(format, "v") == 0) {
        vector = va_arg(args, RedisModuleString **);
        n = va_arg(args, size_t);
    }
    fake_words *words = fake_new_words((int)n + 1);
    fake_set_word(words, 0, command, strlen(command));
    words->argc = 1;
    for (; vector != NULL && words->argc <= (int)n; words->argc++) {
        words->argv[words->argc] = vector[words->argc - 1];
        vector[words->argc - 1]->refs++;
    }
    for (; vector == NULL && *format != '\0'; format++, words->argc++) {
        char number[24];
        if (*format == 's') {
            words->argv[words->argc] = va_arg(args, RedisModuleString *);
            words->argv[words->argc]->refs++;
        } else if (*format == 'c' || *format == 'b') {
            const char *text = va_arg(args, const char *);
            fake_set_word(words, words->argc, text, *format == 'c' ? strlen(text) : va_arg(args, size_t));
        } else if (*format == 'l') {
            fake_set_word(words, words->argc, number, (size_t)sprintf(number, "%lld", va_arg(args, long long)));
        } else {
            fake_fault("%s: the fake host has no format '%c'", command, *format);
            break;
        }
    }
    return words;
}

static RedisModuleCallReply *fail(int kind, const char *command) {
    int wants_integer = strcmp(command, "ZCOUNT") == 0 || strcmp(command, "EXISTS") == 0;
    if (kind == FAKE_NO_REPLY) {
        errno = EPERM;
        return NULL;
    }
    if (kind == FAKE_ERROR) return error_reply("ERR failed, as the test wants");
    if (kind == FAKE_OTHER_TYPE && !wants_integer) return new_reply(REPLY_INTEGER);
    if (kind == FAKE_INTEGERS) return array_reply(2, REPLY_INTEGER);
    return text_reply(REPLY_STRING, "7", 1);
}

enum { REPLY_NULL = 4 }; /* the module never asks for this type */

static RedisModuleCallReply *run(RedisModuleCtx *ctx, const fake_words *words) {
    RedisModuleString **argv = (RedisModuleString **)words->argv;
    const char *command = argv[0]->bytes;
    if (strcmp(command, "CONFIG") == 0) return config_get();
    if (strcmp(command, "EXISTS") == 0) return exists(words);
    if (strcmp(command, "PING") == 0) return text_reply(REPLY_STRING, "PONG", 4);
    fake_check_declared(ctx, argv[1], command);
    const fake_entry *entry = fake_look_up(argv[1]);
    int wanted = strcmp(command, "GET") == 0 ? TYPE_STRING : TYPE_ZSET;
    if (entry != NULL && entry->type != wanted) return error_reply("WRONGTYPE Operation against a key holding the wrong kind of value");
    if (wanted == TYPE_STRING) return entry != NULL ? text_reply(REPLY_STRING, entry->text.bytes, entry->text.len) : new_reply(REPLY_NULL);
    if (strcmp(command, "ZCOUNT") == 0) return zcount(entry, argv[3]->bytes);
    if (strcmp(command, "ZRANGE") != 0) fake_fault("Call: the fake host cannot run %s", command);
    return zrange(entry, argv);
}

RedisModuleCallReply *fake_Call(RedisModuleCtx *ctx, const char *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int as_user = *format == 'C';
    fake_words *words = fake_read_words(command, format + as_user, args);
    va_end(args);
    fake.counts[FAKE_STEPS]++;
    RedisModuleCallReply *reply = NULL;
    if (as_user && fake.is[FAKE_NO_USER]) {
        errno = ENOTSUP;
    } else if (!fake_knows(command)) {
        errno = ENOENT;
    } else {
        int kind = fake_has(FAKE_REFUSED, command) ? fake.calls_fail : 0;
        fake_check_open(command, NULL);
        if (words->argc > 1) fake_event(FAKE_INNER, "filter", words->argv[1]); /* as a command filter of another module */
        reply = kind ? fail(kind, command) : run(ctx, words);
    }
    fake_free_words(words);
    return reply;
}

/* As in the server, NULL for a reply ends the process in the functions below. */
int fake_CallReplyType(RedisModuleCallReply *reply) {
    return reply->type;
}

long long fake_CallReplyInteger(RedisModuleCallReply *reply) {
    return reply->type == REPLY_INTEGER ? reply->integer : LLONG_MIN;
}

size_t fake_CallReplyLength(RedisModuleCallReply *reply) {
    return reply->len;
}

RedisModuleCallReply *fake_CallReplyArrayElement(RedisModuleCallReply *reply, size_t i) {
    return reply->type == REPLY_ARRAY && i < reply->len ? &reply->elements[i] : NULL;
}

const char *fake_CallReplyStringPtr(RedisModuleCallReply *reply, size_t *len) {
    if (reply->type != REPLY_STRING && reply->type != REPLY_ERROR) return NULL;
    if (len != NULL) *len = reply->len;
    return reply->text.bytes;
}

/* The server ignores an element: its memory goes with the whole reply. */
void fake_FreeCallReply(RedisModuleCallReply *reply) {
    if (reply->nested) return;
    for (size_t i = 0; reply->elements != NULL && i < reply->len; i++) fake_drop(&reply->elements[i].text);
    free(reply->elements);
    fake_drop(&reply->text);
    free(reply);
    fake.alive[FAKE_REPLIES]--;
}
