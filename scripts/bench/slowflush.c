/* Preloaded into PostgreSQL by the benchmarks: every flush of the write-ahead log takes SLOWFLUSH_US longer,
   so that figures speak of a disk with a known flush, not of the mood of this machine's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int fdatasync(int fd)
{
    static int (*real)(int);
    static long microseconds = -1;
    if (microseconds < 0) {
        const char *text = getenv("SLOWFLUSH_US");
        microseconds = text ? atol(text) : 0;
        real = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    }
    struct timespec wait = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&wait, NULL);
    return real(fd);
}
