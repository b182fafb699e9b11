/* A module of another project that has the name redis-cell and no commands. */
#include <stddef.h>

int RedisModule_OnLoad(void **ctx, void **argv, int argc) {
    (void)argv, (void)argc;
    int (*get_api)(const char *, void *) = (int (*)(const char *, void *))ctx[0];
    void (*set_attribs)(void *, const char *, int, int) = NULL;
    get_api("RedisModule_SetModuleAttribs", &set_attribs);
    set_attribs(ctx, "redis-cell", 1, 1);
    return 0;
}
