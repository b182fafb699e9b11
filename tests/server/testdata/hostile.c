/* A module that changes keys in keyspace events, as no module should.
 *
 *   HOSTILE.DO event action key          does the action whenever it hears the event
 *   HOSTILE.OFF                          does nothing more; replies how many actions it has done, and the
 *                                        names of the events that it has heard, each once
 *   HOSTILE.ACT action key               does the action now
 *
 * The server's own commands do not survive each action: see survives. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef void *ptr;

enum { WRITE = 3, ALL_EVENTS = 0x7ffc, MAX_NAME = 64, MAX_WORDS = 6 };

static const char *(*text_of)(ptr text, size_t *len);
static ptr (*new_text)(ptr ctx, const char *bytes, size_t len);
static void (*free_text)(ptr ctx, ptr text);
static ptr (*call)(ptr ctx, const char *command, const char *format, ...);
static void (*free_reply)(ptr reply);
static ptr (*open_key)(ptr ctx, ptr name, int mode);
static void (*close_key)(ptr key);
static int (*delete_key)(ptr key);
static int (*set_expiry)(ptr key, long long at_ms);
static int (*reply_integer)(ptr ctx, long long n);
static int (*reply_text)(ptr ctx, const char *text);
static int (*reply_array)(ptr ctx, long len);
static int (*wrong_arity)(ptr ctx);
static int (*create_command)(ptr ctx, const char *name, int (*run)(ptr, ptr *, int), const char *flags, int first,
                             int last, int step);
static int (*subscribe)(ptr ctx, int events, int (*hear)(ptr ctx, int type, const char *event, ptr key));
static void (*set_attribs)(ptr ctx, const char *name, int version, int api_version);

/* @ is the key. The first word is a command in capitals, or delete or expire, of the module API. */
enum { ADDS, REMOVES, EVERYTHING };
static const struct {
    const char *name;
    int how; /* REMOVES: the key's value may be freed or moved; EVERYTHING: that of all keys */
    const char *words[MAX_WORDS];
} actions[] = {
    {"set", REMOVES, {"SET", "@", "theirs"}},
    {"hset", ADDS, {"HSET", "@", "theirs", "theirs"}},
    {"zadd", ADDS, {"ZADD", "@", "1", "theirs"}},
    {"append", REMOVES, {"APPEND", "@", "theirs"}},
    {"del", REMOVES, {"DEL", "@"}},
    {"pexpire", REMOVES, {"PEXPIRE", "@", "1"}},
    {"persist", REMOVES, {"PERSIST", "@"}},
    {"rename", REMOVES, {"RENAME", "@", "elsewhere"}},
    {"replace", REMOVES, {"COPY", "theirs", "@", "REPLACE"}},
    {"move", REMOVES, {"MOVE", "@", "1"}},
    {"delete", REMOVES, {"delete"}},
    {"expire", REMOVES, {"expire"}}, /* the key has expired, but is there */
    {"throttle", REMOVES, {"GO.THROTTLE", "@", "3", "1", "60"}},
    {"window", REMOVES, {"GO.WINDOW", "@", "3", "60"}},
    {"quota", REMOVES, {"GO.QUOTA", "@", "3", "60"}},
    {"lease", REMOVES, {"GO.LEASE", "@", "3", "60", "theirs"}},
    {"all", REMOVES, {"GO.ALL", "@", "QUOTA", "3", "60"}},
    {"flushall", EVERYTHING, {"FLUSHALL"}},
    {"swapdb", EVERYTHING, {"SWAPDB", "0", "1"}},
};
enum { NUM_ACTIONS = sizeof actions / sizeof *actions };

static char event[MAX_NAME], heard[1024] = " ", target[MAX_NAME];
static int action, is_on, busy;
static long long acted;

static void act(ptr ctx, int which, ptr key) {
    const char *const *words = actions[which].words;
    if (*words[0] >= 'a') {
        ptr open = open_key(ctx, key, WRITE);
        strcmp(words[0], "delete") == 0 ? delete_key(open) : set_expiry(open, 1);
        close_key(open);
        return;
    }
    ptr argv[MAX_WORDS];
    size_t n = 0;
    for (size_t i = 1; i < MAX_WORDS && words[i] != NULL; i++) {
        const char *word = *words[i] == '@' ? text_of(key, NULL) : words[i];
        argv[n++] = new_text(NULL, word, strlen(word));
    }
    ptr reply = call(ctx, words[0], "!v", argv, n);
    if (reply != NULL) free_reply(reply);
    for (size_t i = 0; i < n; i++) free_text(NULL, argv[i]);
}

/* Whether the server's own HSET, ZADD and SET survive an action in the event new. They go on with the
 * value that they have added, so it must stay where it is. An expiry moves it in newer servers. */
static int survives(const char *name, ptr key) {
    if (strcmp(name, "new") != 0 || actions[action].how == ADDS) return 1;
    return actions[action].how == REMOVES && strcmp(text_of(key, NULL), target) != 0;
}

static void note(const char *name) {
    char word[MAX_NAME + 2] = " "; /* heard begins with a blank, and each name ends with one */
    strcat(strncat(word, name, MAX_NAME - 1), " ");
    if (strstr(heard, word) == NULL && strlen(heard) + MAX_NAME + 2 < sizeof heard) strcat(heard, word + 1);
}

static int hear(ptr ctx, int type, const char *name, ptr key) {
    (void)type;
    if (busy) return 0;
    note(name);
    if (!is_on || strcmp(name, event) != 0 || !survives(name, key)) return 0;
    busy = 1;
    ptr text = new_text(NULL, target, strlen(target));
    act(ctx, action, text);
    free_text(NULL, text);
    busy = 0;
    acted++;
    return 0;
}

static int find_action(ptr word) {
    for (int i = 0; i < NUM_ACTIONS; i++)
        if (strcasecmp(actions[i].name, text_of(word, NULL)) == 0) return i;
    abort();
}

static void put(char *to, ptr word) { strncpy(to, text_of(word, NULL), MAX_NAME - 1); }

static int off(ptr ctx, ptr *argv, int argc) {
    (void)argv, (void)argc;
    reply_array(ctx, 2);
    reply_integer(ctx, acted);
    reply_text(ctx, heard);
    is_on = heard[1] = 0;
    acted = 0;
    return 0;
}

static int do_action(ptr ctx, ptr *argv, int argc) {
    if (argc != 4) return wrong_arity(ctx);
    off(ctx, argv, argc);
    put(event, argv[1]);
    action = find_action(argv[2]);
    put(target, argv[3]);
    is_on = 1;
    return 0;
}

static int act_now(ptr ctx, ptr *argv, int argc) {
    if (argc != 3) return wrong_arity(ctx);
    busy = 1;
    act(ctx, find_action(argv[1]), argv[2]);
    busy = 0;
    return reply_integer(ctx, 0);
}

int RedisModule_OnLoad(ptr *ctx, ptr *argv, int argc) {
    (void)argv, (void)argc;
    int (*get_api)(const char *, void *) = (int (*)(const char *, void *))ctx[0];
    const struct { const char *name; void *function; } needed[] = {
        {"StringPtrLen", &text_of}, {"CreateString", &new_text}, {"FreeString", &free_text}, {"Call", &call},
        {"FreeCallReply", &free_reply}, {"OpenKey", &open_key}, {"CloseKey", &close_key}, {"DeleteKey", &delete_key},
        {"SetAbsExpire", &set_expiry}, {"ReplyWithLongLong", &reply_integer}, {"ReplyWithCString", &reply_text},
        {"ReplyWithArray", &reply_array}, {"WrongArity", &wrong_arity},
        {"CreateCommand", &create_command}, {"SubscribeToKeyspaceEvents", &subscribe}, {"SetModuleAttribs", &set_attribs}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        char name[MAX_NAME] = "RedisModule_";
        if (get_api(strcat(name, needed[i].name), needed[i].function) != 0) return 1;
    }
    set_attribs(ctx, "hostile", 1, 1);
    const struct { const char *name; int (*run)(ptr, ptr *, int); } commands[] = {
        {"hostile.do", do_action}, {"hostile.off", off}, {"hostile.act", act_now}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (create_command(ctx, commands[i].name, commands[i].run, "write", 0, 0, 0) != 0) return 1;
    return subscribe(ctx, ALL_EVENTS, hear);
}
