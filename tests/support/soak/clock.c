/* Another time and another name for one machine, told by files, for every program that is started with it preloaded.
 *
 * SOAK_CLOCK names a file of one long: the seconds that this machine's clock is off. It is mapped, so that a clock jumps
 * under programs that run. SOAK_NAME is what the machine is called. Clocks that only measure are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static volatile long *off;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("SOAK_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *at = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (at != MAP_FAILED)
            off = at;
        close(file);
    }
}

static long seconds(void) { return off ? *off : 0; }

int clock_gettime(clockid_t clock, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, out);
    if (!done && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += seconds();
    return done;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int uname(struct utsname *out) {
    static int (*real)(struct utsname *);
    const char *name = getenv("SOAK_NAME");
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "uname");
    int done = real(out);
    if (!done && name) {
        strncpy(out->nodename, name, sizeof out->nodename - 1);
        out->nodename[sizeof out->nodename - 1] = 0;
    }
    return done;
}
