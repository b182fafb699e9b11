/* Clocks that a test sets, for a server that is started with this library in LD_PRELOAD. The file
 * that GOTHROTTLE_CLOCK names holds three numbers of 64 bits. The first is 1 if the wall clock does not
 * move, else 0. The second is in microseconds: the time of a clock that does not move, or what is
 * added to the real time. The third, if it is not 0, is the monotonic clock that a library whose
 * name begins with gothrottle reads, in microseconds. Other clocks stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *set;

__attribute__((constructor)) static void open_file(void) {
    const char *name = getenv("GOTHROTTLE_CLOCK");
    int file = name != NULL ? open(name, O_RDONLY) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, 24, PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) set = map;
    close(file);
}

/* Whether an address of code belongs to the module. dladdr would walk the symbols of the whole server. */
static int of_module(void *code) {
    struct dl_find_object found;
    if (_dl_find_object(code, &found) != 0) return 0;
    const char *name = strrchr(found.dlfo_link_map->l_name, '/');
    return name != NULL && strncmp(name, "/gothrottle", 11) == 0;
}

int clock_gettime(clockid_t id, struct timespec *t) {
    if (id == CLOCK_MONOTONIC && set != NULL && set[2] != 0 && of_module(__builtin_return_address(0))) {
        t->tv_sec = set[2] / 1000000;
        t->tv_nsec = set[2] % 1000000 * 1000;
        return 0;
    }
    int wall = set != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE), still = wall && set[0];
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime"); /* it needs no system call */
    int result = still ? 0 : next(id, t);
    if (result != 0 || !wall) return result;
    int64_t us = set[1];
    if (!still) us += (int64_t)t->tv_sec * 1000000 + t->tv_nsec / 1000;
    t->tv_sec = us / 1000000;
    t->tv_nsec = us % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t != NULL) *t = now.tv_sec;
    return now.tv_sec;
}

/* Valkey 9.1 advances the wall clock by the processor's counter if /proc/cpuinfo says how fast that counts. On arm64 it asks
 * the processor. */
FILE *fopen64(const char *restrict name, const char *restrict mode) {
    static FILE *(*next)(const char *, const char *);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "fopen64");
    return strcmp(name, "/proc/cpuinfo") == 0 ? NULL : next(name, mode);
}

/* Valkey loads modules so that they look for functions in their own libraries first. The module must find those of this one. */
void *dlopen(const char *name, int flags) {
    static void *(*next)(const char *, int);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    return next(name, flags & ~RTLD_DEEPBIND);
}
