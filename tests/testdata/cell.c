/* A stand-in for redis-cell, for machines without a Rust compiler. It has the name and the command of
 * redis-cell 0.5.0, and what matters to a swap: the TAT in ns as a string that expires at the TAT, its
 * own clock, the call itself as the effect, and a server that ends when the key isn't a number. */
#include <stdlib.h>
#include <time.h>

typedef void *ptr;

enum { READ = 1, WRITE = 2, STRING = 1 };

static const long long MS = 1000000, NS = 1000000000;

static ptr (*open_key)(ptr ctx, ptr name, int mode);
static void (*close_key)(ptr key);
static int (*key_type)(ptr key);
static char *(*string_dma)(ptr key, size_t *len, int mode);
static int (*string_set)(ptr key, ptr value);
static int (*set_expire)(ptr key, long long ms);
static ptr (*new_string)(ptr ctx, long long n);
static void (*free_string)(ptr ctx, ptr text);
static int (*to_integer)(ptr text, long long *n);
static int (*reply_error)(ptr ctx, const char *text);
static int (*reply_array)(ptr ctx, long len);
static int (*reply_integer)(ptr ctx, long long n);
static int (*replicate_verbatim)(ptr ctx);
static int (*create_command)(ptr ctx, const char *name, int (*run)(ptr, ptr *, int), const char *flags, int first,
                             int last, int step);
static void (*set_attribs)(ptr ctx, const char *name, int version, int api_version);

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

/* The TAT at a key, or now for no key. Anything else ends the server. */
static long long read_tat(ptr key, long long now) {
    if (key_type(key) == 0) return now;
    if (key_type(key) != STRING) abort();
    size_t len;
    char text[32], *end, *found = string_dma(key, &len, READ);
    if (len == 0 || len >= sizeof text) abort();
    for (size_t i = 0; i < len; i++) text[i] = found[i];
    text[len] = 0;
    long long tat = strtoll(text, &end, 10);
    if (*end != 0) abort();
    return tat;
}

static void write_tat(ptr ctx, ptr key, long long tat, long long now) {
    ptr text = new_string(ctx, tat);
    string_set(key, text);
    set_expire(key, (tat - now) / MS);
    free_string(ctx, text);
}

static long long seconds(long long ns) { return ns / NS + (ns % NS >= MS); }

static int throttle(ptr ctx, ptr *argv, int argc) {
    long long burst, count, period, quantity = 1;
    if (argc < 5 || argc > 6) return reply_error(ctx, "Cell error: Usage");
    if (to_integer(argv[2], &burst) || to_integer(argv[3], &count) || to_integer(argv[4], &period) ||
        (argc == 6 && to_integer(argv[5], &quantity)) || count == 0 || period == 0)
        return reply_error(ctx, "Cell error: Couldn't parse as integer");
    ptr key = open_key(ctx, argv[1], READ | WRITE);
    long long now = now_ns(), interval = period * NS / count, tolerance = interval * (burst + 1);
    long long tat = read_tat(key, now), next = (now > tat ? now : tat) + interval * quantity;
    int limited = next - tolerance > now;
    if (!limited) write_tat(ctx, key, next, now);
    close_key(key);
    long long used = (limited ? tat : next) - now, left = tolerance - used;
    reply_array(ctx, 5);
    reply_integer(ctx, limited);
    reply_integer(ctx, burst + 1);
    reply_integer(ctx, left > -interval ? left / interval : 0);
    reply_integer(ctx, limited && interval * quantity <= tolerance ? seconds(next - tolerance - now) : -1);
    reply_integer(ctx, seconds(used));
    return replicate_verbatim(ctx);
}

int RedisModule_OnLoad(ptr *ctx, ptr *argv, int argc) {
    (void)argv, (void)argc;
    int (*get_api)(const char *, void *) = (int (*)(const char *, void *))ctx[0];
    const struct { const char *name; void *function; } needed[] = {
        {"RedisModule_OpenKey", &open_key}, {"RedisModule_CloseKey", &close_key},
        {"RedisModule_KeyType", &key_type}, {"RedisModule_StringDMA", &string_dma},
        {"RedisModule_StringSet", &string_set}, {"RedisModule_SetExpire", &set_expire},
        {"RedisModule_CreateStringFromLongLong", &new_string}, {"RedisModule_FreeString", &free_string},
        {"RedisModule_StringToLongLong", &to_integer}, {"RedisModule_ReplyWithError", &reply_error},
        {"RedisModule_ReplyWithArray", &reply_array}, {"RedisModule_ReplyWithLongLong", &reply_integer},
        {"RedisModule_ReplicateVerbatim", &replicate_verbatim}, {"RedisModule_CreateCommand", &create_command},
        {"RedisModule_SetModuleAttribs", &set_attribs}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (get_api(needed[i].name, needed[i].function) != 0) return 1;
    set_attribs(ctx, "redis-cell", 1, 1);
    return create_command(ctx, "cl.throttle", throttle, "write", 1, 1, 1);
}
