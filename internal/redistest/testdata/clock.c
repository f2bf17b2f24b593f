// A library that a server loads before all others. It makes the wall clock differ from the true time by the number of
// microseconds in the file that REDISTEST_CLOCK names. libfaketime cannot be used: it hangs with jemalloc.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none, *offset = &none;

__attribute__((constructor)) static void load(void) {
	const char *path = getenv("REDISTEST_CLOCK");
	int file = path ? open(path, O_RDONLY) : -1;
	if (file < 0)
		abort();
	void *at = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		abort();
	offset = at;
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
	int status = syscall(SYS_clock_gettime, clock, at);
	if (status == 0 && clock == CLOCK_REALTIME) {
		int64_t ns = at->tv_nsec + *offset % 1000000 * 1000;
		at->tv_sec += *offset / 1000000 + (ns < 0 ? -1 : ns / 1000000000);
		at->tv_nsec = (ns + 1000000000) % 1000000000;
	}
	return status;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	at->tv_sec = now.tv_sec;
	at->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *at) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
