/* A module that changes keys in keyspace events, as no module should.
 *
 *   HOSTILE event key command ...   makes the call whenever it hears the event, or once, if the event is "now", or before each
 *                                   ZRANGE, ZCOUNT and GET, if it is "filter": gothrottle runs these amid its calls. The
 *                                   commands delete and expire are functions of the module API, for the key.
 *
 * The server's own commands do not survive each call: see survives. */
#include <stddef.h>
#include <string.h>

typedef void *ptr;

enum { WRITE = 3, ALL_EVENTS = 0x7ffc, MAX_NAME = 64, MAX_WORDS = 6 };

/* The functions of the module API: type, name, parameters. */
#define API(F) \
    F(const char *, StringPtrLen, (ptr text, size_t *len)) \
    F(ptr, CreateString, (ptr ctx, const char *bytes, size_t len)) \
    F(void, FreeString, (ptr ctx, ptr text)) \
    F(ptr, Call, (ptr ctx, const char *command, const char *format, ...)) \
    F(void, FreeCallReply, (ptr reply)) \
    F(ptr, OpenKey, (ptr ctx, ptr name, int mode)) \
    F(void, CloseKey, (ptr key)) \
    F(int, DeleteKey, (ptr key)) \
    F(int, SetAbsExpire, (ptr key, long long at_ms)) \
    F(int, ReplyWithLongLong, (ptr ctx, long long n)) \
    F(int, WrongArity, (ptr ctx)) \
    F(int, CreateCommand, (ptr ctx, const char *name, int (*run)(ptr, ptr *, int), const char *flags, int first, \
                           int last, int step)) \
    F(ptr, GetDetachedThreadSafeContext, (ptr ctx)) \
    F(ptr, CommandFilterArgGet, (ptr command, int at)) \
    F(ptr, RegisterCommandFilter, (ptr ctx, void (*filter)(ptr command), int flags)) \
    F(int, SubscribeToKeyspaceEvents, (ptr ctx, int events, int (*hear)(ptr ctx, int type, const char *event, ptr key))) \
    F(void, SetModuleAttribs, (ptr ctx, const char *name, int version, int api_version))
#define DECLARE(type, name, parameters) static type(*name) parameters;
#define FIND(type, name, parameters) if (get_api("RedisModule_" #name, &name) != 0) return 1;

API(DECLARE)

static char event[MAX_NAME], target[MAX_NAME], words[MAX_WORDS][MAX_NAME];
static int num_words, busy;
static ptr own; /* a context for the filter, which gets none */

static void act(ptr ctx) {
    ptr key = CreateString(NULL, target, strlen(target)), argv[MAX_WORDS];
    busy = 1;
    if (*words[0] >= 'a') {
        ptr open = OpenKey(ctx, key, WRITE);
        strcmp(words[0], "delete") == 0 ? DeleteKey(open) : SetAbsExpire(open, 1);
        CloseKey(open);
    } else {
        for (int i = 1; i < num_words; i++) argv[i] = CreateString(NULL, words[i], strlen(words[i]));
        ptr reply = Call(ctx, words[0], "!v", argv + 1, (size_t)num_words - 1);
        if (reply != NULL) FreeCallReply(reply);
        for (int i = 1; i < num_words; i++) FreeString(NULL, argv[i]);
    }
    busy = 0;
    FreeString(NULL, key);
}

static int is(const char *name) { return strcmp(words[0], name) == 0; }

/* Whether the server's own HSET, ZADD and SET survive the call in the event new. They go on with the
 * value that they have added, so it must stay where it is. An expiry moves it in newer servers. */
static int survives(const char *name, ptr key) {
    if (strcmp(name, "new") != 0 || is("HSET") || is("ZADD")) return 1;
    return !is("FLUSHALL") && !is("SWAPDB") && strcmp(StringPtrLen(key, NULL), target) != 0;
}

static int hear(ptr ctx, int type, const char *name, ptr key) {
    (void)type;
    if (!busy && strcmp(name, event) == 0 && survives(name, key)) act(ctx);
    return 0;
}

static void filter(ptr command) {
    const char *name = StringPtrLen(CommandFilterArgGet(command, 0), NULL);
    if (!busy && strcmp(event, "filter") == 0 && (*name == 'Z' || strcmp(name, "GET") == 0)) act(own);
}

static void put(char *to, ptr word) { strncpy(to, StringPtrLen(word, NULL), MAX_NAME - 1); }

static int hostile(ptr ctx, ptr *argv, int argc) {
    if (argc < 4 || argc > 3 + MAX_WORDS) return WrongArity(ctx);
    put(event, argv[1]);
    put(target, argv[2]);
    num_words = argc - 3;
    for (int i = 0; i < num_words; i++) put(words[i], argv[3 + i]);
    if (strcmp(event, "now") == 0) act(ctx);
    return ReplyWithLongLong(ctx, 0);
}

int RedisModule_OnLoad(ptr *ctx, ptr *argv, int argc) {
    (void)argv, (void)argc;
    int (*get_api)(const char *, void *) = (int (*)(const char *, void *))ctx[0];
    API(FIND)
    SetModuleAttribs(ctx, "hostile", 1, 1);
    if (CreateCommand(ctx, "hostile", hostile, "write", 0, 0, 0) != 0) return 1;
    own = GetDetachedThreadSafeContext(ctx);
    if (RegisterCommandFilter(ctx, filter, 0) == NULL) return 1;
    return SubscribeToKeyspaceEvents(ctx, ALL_EVENTS, hear);
}
