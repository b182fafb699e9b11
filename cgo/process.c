/* The process: clocks, the log, how late its threads wake, no Go in a forked child, and the handlers of signals. */
#include "shim.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

shim_clock_state shim_clock;
int64_t shim_panics;

static int64_t read_clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The time at which the running command began, if the server has CachedMicroseconds (1.7 ns).
 * Otherwise the system's time (20 ns). */
int64_t shim_wall_us(void) {
    return api.CachedMicroseconds != NULL ? api.CachedMicroseconds() : read_clock_us(CLOCK_REALTIME);
}

static int64_t monotonic_us(void) {
    return read_clock_us(CLOCK_MONOTONIC);
}
int64_t (*shim_monotonic_us)(void) = monotonic_us;

int64_t shim_call_monotonic_us(void) {
    return shim_monotonic_us();
}

void shim_log(const char *level, const char *text) {
    api.Log(NULL, level, "%s", text);
}

/* How late the threads of the Go runtime may wake from a timed sleep, in ns.
 *
 * The runtime's monitor thread takes processors away from goroutines that have run for over 10 ms without being
 * scheduled. The monitor sees the server's main thread as a goroutine that never yields. Without slack the monitor woke
 * every 20 us under load, took the processor and woke a further thread: the main thread was preempted 3,000 times a
 * second. Nothing of ours waits for the monitor. With this slack the monitor wakes 120 times a second under full load
 * (1,000 times if the load comes in bursts, since the kernel lets timers expire together). The p99 of "GO.THROTTLE
 * denied" fell from 1.05 ms to 0.65 ms, which is that of SET.
 *
 * A new thread inherits the slack of the thread that creates it. So the slack is set before the constructor of the Go
 * runtime, which has no priority, makes the first thread. OnLoad restores the slack of the main thread. */
#define GO_TIMER_SLACK_NS 10000000ul
static unsigned long timer_slack_ns; /* of the server's main thread; 0: nothing to put back */

/* prctl passes five arguments on to the kernel, so none of them is left out. */
static void set_timer_slack(unsigned long ns) {
    prctl(PR_SET_TIMERSLACK, ns, 0ul, 0ul, 0ul);
}

static void begin_slack(void) {
    long slack = syscall(SYS_prctl, PR_GET_TIMERSLACK); /* prctl() would cut it to an int */
    if (slack <= 0 || (unsigned long)slack >= GO_TIMER_SLACK_NS) return;
    timer_slack_ns = (unsigned long)slack;
    set_timer_slack(GO_TIMER_SLACK_NS);
}

static void restore_timer_slack(void) {
    if (timer_slack_ns > 0) set_timer_slack(timer_slack_ns);
}

/* A forked child has the thread that forked and no other: Go would wait forever for its own threads, at the latest
 * when garbage is to be collected. */
int shim_forked;

static void in_child(void) {
    shim_forked = 1;
}

/* The faults that Go turns into panics. CONFIG SET crash-log-enabled replaces Go's handlers of them, so keep_handlers
 * puts those back: otherwise a nil pointer in Go would end the server.
 *
 * Go calls the handler that it found when it started for each fault outside Go. It found pass_on, which leaves the fault
 * to the handler that the server has set last, as if there were no module. */
enum { FAULTS = 3 };
static const int faults[FAULTS] = {SIGSEGV, SIGBUS, SIGFPE};
static struct sigaction at_start[FAULTS], of_server[FAULTS], of_go[FAULTS];

/* Puts the server's handler in place and returns. The fault then happens again, on its own stack. A signal that another
 * process sent does not, so it is raised. The handler may also be that of another Go module, which comes back here: the
 * next one is that from before Go's start, and the last one the default, which ends the process. */
static void pass_on(int sig, siginfo_t *info, void *context) {
    (void)context;
    for (int i = 0; i < FAULTS; i++) {
        if (faults[i] != sig) continue;
        sigaction(sig, &of_server[i], NULL);
        of_server[i] = at_start[i];
        at_start[i] = (struct sigaction){.sa_handler = SIG_DFL};
    }
    if (info->si_code <= 0) raise(sig);
}

/* The constructor of the Go runtime has no priority, so it runs later. */
__attribute__((constructor(101))) static void before_go(void) {
    begin_slack();
    struct sigaction ours = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; i < FAULTS; i++) {
        sigaction(faults[i], &ours, &at_start[i]);
        of_server[i] = at_start[i];
    }
}

/* A goroutine's stack has no room for a handler of the server's, so the handler must run on the stack for signals. Go
 * saw to that for the handlers that it found when it started. */
static void use_signal_stack(int sig) {
    struct sigaction now;
    sigaction(sig, NULL, &now);
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || now.sa_flags & SA_ONSTACK) return;
    now.sa_flags |= SA_ONSTACK;
    sigaction(sig, &now, NULL);
}

static void keep_handlers(RedisModuleCtx *ctx, api_event event, uint64_t subevent, void *data) {
    (void)ctx, (void)event, (void)subevent, (void)data;
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction now;
        sigaction(faults[i], NULL, &now);
        if (now.sa_sigaction == of_go[i].sa_sigaction) continue;
        of_server[i] = now;
        sigaction(faults[i], &of_go[i], NULL);
    }
    /* Redis 7.0 sets these, by crash-log-enabled and by watchdog-period. */
    use_signal_stack(SIGTERM);
    use_signal_stack(SIGINT);
    use_signal_stack(SIGALRM);
}

void shim_enter_process(void) {
    restore_timer_slack();
    static int entered;
    if (entered) return;
    entered = 1;
    for (int i = 0; i < FAULTS; i++) sigaction(faults[i], NULL, &of_go[i]);
    pthread_atfork(NULL, NULL, in_child);
}

/* The server reports a CONFIG SET only if it succeeded. To undo one that failed, the server may have set handlers, too:
 * its next cron loop finds them. */
void shim_watch_handlers(RedisModuleCtx *ctx) {
    keep_handlers(ctx, (api_event){0}, 0, NULL);
    api.SubscribeToServerEvent(ctx, (api_event){EVENT_CONFIG, 1}, keep_handlers);
    api.SubscribeToServerEvent(ctx, (api_event){EVENT_CRON_LOOP, 1}, keep_handlers);
}
