/* What the module asks of the process: no Go in a forked child. */
#include "shim.h"

#include <pthread.h>
#include <stddef.h>

/* A forked child has the thread that forked and no other: Go would wait for ever for its own threads, at the latest
 * when garbage is to be collected. */
int shim_forked;

static void in_child(void) {
    shim_forked = 1;
}

void shim_enter_process(void) {
    static int entered;
    if (entered) return;
    entered = 1;
    pthread_atfork(NULL, NULL, in_child);
}
