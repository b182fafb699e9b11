/* A stand-in for redis-cell, for machines without a Rust compiler. It has the name and the command of
 * redis-cell 0.5.0, and what matters to a swap: the TAT in ns as a string that expires at the TAT, its
 * own clock, the call itself as the effect, and a server that ends when the key isn't a number. */
#include <stdlib.h>
#include <time.h>

typedef void *ptr;

enum { READ = 1, WRITE = 2, STRING = 1 };

static const long long MS = 1000000, NS = 1000000000;

/* The functions of the module API: type, name, parameters. */
#define API(F) \
    F(ptr, OpenKey, (ptr ctx, ptr name, int mode)) \
    F(void, CloseKey, (ptr key)) \
    F(int, KeyType, (ptr key)) \
    F(char *, StringDMA, (ptr key, size_t *len, int mode)) \
    F(int, StringSet, (ptr key, ptr value)) \
    F(int, SetExpire, (ptr key, long long ms)) \
    F(ptr, CreateStringFromLongLong, (ptr ctx, long long n)) \
    F(void, FreeString, (ptr ctx, ptr text)) \
    F(int, StringToLongLong, (ptr text, long long *n)) \
    F(int, ReplyWithError, (ptr ctx, const char *text)) \
    F(int, ReplyWithArray, (ptr ctx, long len)) \
    F(int, ReplyWithLongLong, (ptr ctx, long long n)) \
    F(int, ReplicateVerbatim, (ptr ctx)) \
    F(int, CreateCommand, (ptr ctx, const char *name, int (*run)(ptr, ptr *, int), const char *flags, int first, \
                           int last, int step)) \
    F(void, SetModuleAttribs, (ptr ctx, const char *name, int version, int api_version))
#define DECLARE(type, name, parameters) static type(*name) parameters;
#define FIND(type, name, parameters) if (get_api("RedisModule_" #name, &name) != 0) return 1;

API(DECLARE)

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

/* The TAT at a key, or now for no key. Anything else ends the server. */
static long long read_tat(ptr key, long long now) {
    if (KeyType(key) == 0) return now;
    if (KeyType(key) != STRING) abort();
    size_t len;
    char text[32], *end, *found = StringDMA(key, &len, READ);
    if (len == 0 || len >= sizeof text) abort();
    for (size_t i = 0; i < len; i++) text[i] = found[i];
    text[len] = 0;
    long long tat = strtoll(text, &end, 10);
    if (*end != 0) abort();
    return tat;
}

static void write_tat(ptr ctx, ptr key, long long tat, long long now) {
    ptr text = CreateStringFromLongLong(ctx, tat);
    StringSet(key, text);
    SetExpire(key, (tat - now) / MS);
    FreeString(ctx, text);
}

static long long seconds(long long ns) { return ns / NS + (ns % NS >= MS); }

static int throttle(ptr ctx, ptr *argv, int argc) {
    long long burst, count, period, quantity = 1;
    if (argc < 5 || argc > 6) return ReplyWithError(ctx, "Cell error: Usage");
    if (StringToLongLong(argv[2], &burst) || StringToLongLong(argv[3], &count) || StringToLongLong(argv[4], &period) ||
        (argc == 6 && StringToLongLong(argv[5], &quantity)) || count == 0 || period == 0)
        return ReplyWithError(ctx, "Cell error: Couldn't parse as integer");
    ptr key = OpenKey(ctx, argv[1], READ | WRITE);
    long long now = now_ns(), interval = period * NS / count, tolerance = interval * (burst + 1);
    long long tat = read_tat(key, now), next = (now > tat ? now : tat) + interval * quantity;
    int limited = next - tolerance > now;
    if (!limited) write_tat(ctx, key, next, now);
    CloseKey(key);
    long long used = (limited ? tat : next) - now, left = tolerance - used;
    ReplyWithArray(ctx, 5);
    ReplyWithLongLong(ctx, limited);
    ReplyWithLongLong(ctx, burst + 1);
    ReplyWithLongLong(ctx, left > -interval ? left / interval : 0);
    ReplyWithLongLong(ctx, limited && interval * quantity <= tolerance ? seconds(next - tolerance - now) : -1);
    ReplyWithLongLong(ctx, seconds(used));
    return ReplicateVerbatim(ctx);
}

int RedisModule_OnLoad(ptr *ctx, ptr *argv, int argc) {
    (void)argv, (void)argc;
    int (*get_api)(const char *, void *) = (int (*)(const char *, void *))ctx[0];
    API(FIND)
    SetModuleAttribs(ctx, "redis-cell", 1, 1);
    return CreateCommand(ctx, "cl.throttle", throttle, "write", 1, 1, 1);
}
