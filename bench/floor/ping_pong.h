/* What both floors share: pinning, the clock, the report. Each program is one pair of processes and dies as a whole. */
#ifndef RINGCAST_BENCH_PING_PONG_H
#define RINGCAST_BENCH_PING_PONG_H

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAYLOAD_BYTES = 64, WARM_UP = 1000, MAX_COUNT = 10000000 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

static int64_t now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The two sides: `pong` echoes exactly `count` times, `ping` does one round trip. */
static void pong(long count);
static void ping(void);

static int play(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s CORE CORE COUNT\n", argv[0]);
        return 2;
    }
    long count = atol(argv[3]);
    if (count < 1 || count > MAX_COUNT) {
        fprintf(stderr, "COUNT is 1 to %d\n", MAX_COUNT);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(atoi(argv[2]));
        pong(count + WARM_UP);
        _exit(0);
    }
    pin(atoi(argv[1]));
    int64_t *taken = calloc((size_t)count, sizeof *taken);
    if (!taken) fail("calloc");
    for (long i = -WARM_UP; i < count; ++i) {
        int64_t start = now_ns();
        ping();
        if (i >= 0) taken[i] = now_ns() - start;
    }
    waitpid(child, NULL, 0);
    for (long i = 0; i < count; ++i) printf("%lld\n", (long long)taken[i]);
    free(taken);
    return 0;
}

#endif
