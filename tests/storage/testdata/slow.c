/* A slow disk, for a server that is started with this library in LD_PRELOAD. */
#include <unistd.h>
#include <sys/syscall.h>

static int slow(int result) {
    usleep(20000);
    return result;
}

int fdatasync(int file) { return slow((int)syscall(SYS_fdatasync, file)); }
int fsync(int file) { return slow((int)syscall(SYS_fsync, file)); }
