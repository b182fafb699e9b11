/* A module that makes one call in a keyspace event. Its arguments are the event and the call: docs/upstream/modules-in-events.md.
 * Build it with cc -shared -fPIC -o act.so act.c. */
#include <string.h>
typedef void *ptr;
static void (*SetModuleAttribs)(ptr ctx, const char *name, int version, int api);
static void (*RetainString)(ptr ctx, ptr string);
static const char *(*StringPtrLen)(ptr string, size_t *len);
static ptr (*Call)(ptr ctx, const char *command, const char *format, ...);
static int (*SubscribeToKeyspaceEvents)(ptr ctx, int types, int (*hear)(ptr, int, const char *, ptr));
static ptr words[16];
static size_t n, busy;

static int hear(ptr ctx, int type, const char *event, ptr key) {
    if (busy++ == 0 && strcmp(event, StringPtrLen(words[0], NULL)) == 0)
        Call(ctx, StringPtrLen(words[1], NULL), "!v", words + 2, n - 2);
    return --busy, 0;
}

int RedisModule_OnLoad(ptr *ctx, ptr *argv, int argc) {
    int (*get)(const char *, void *) = (int (*)(const char *, void *))*ctx;
#define GET(name) get("RedisModule_" #name, &name)
    GET(SetModuleAttribs), GET(RetainString), GET(StringPtrLen), GET(Call), GET(SubscribeToKeyspaceEvents);
    SetModuleAttribs(ctx, "act", 1, 1);
    for (n = 0; n < (size_t)argc; n++) RetainString(NULL, words[n] = argv[n]);
    return SubscribeToKeyspaceEvents(ctx, 0x7ffc, hear);
}
