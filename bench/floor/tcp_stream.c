/* How many bytes a second does a bare tcp stream carry from one core to another, with nothing in it? The receiver prints
 * bytes a second. Both ends block, hand over 256 KiB at a time, and use the congestion control that does not pace. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signal.h>
#include <sys/socket.h>
#include <time.h>

enum { AT_ONCE = 256 * 1024, WARM_UP = 16 * 1024 * 1024 };

static char data[AT_ONCE];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void receive(const struct sockaddr_in *at, int64_t total) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (listener < 0) fail("socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (const struct sockaddr *)at, sizeof *at) != 0 || listen(listener, 1) != 0) fail("listen");
    puts("ready");
    fflush(stdout);
    int stream = accept(listener, NULL, NULL);
    if (stream < 0) fail("accept");
    int64_t begun_ns = 0, begun_at = 0, came = 0;
    while (came < total) {
        ssize_t n = recv(stream, data, sizeof data, 0);
        if (n <= 0) fail("recv");
        came += n;
        if (begun_ns == 0 && came >= WARM_UP) begun_ns = now_ns(), begun_at = came;
    }
    printf("%.0f\n", (double)(came - begun_at) * 1e9 / (double)(now_ns() - begun_ns));
}

static void transmit(const struct sockaddr_in *to, int64_t total) {
    int stream = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (stream < 0) fail("socket");
    setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(stream, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (connect(stream, (const struct sockaddr *)to, sizeof *to) != 0) fail("connect");
    for (int64_t gone = 0; gone < total;) {
        ssize_t n = send(stream, data, sizeof data, MSG_NOSIGNAL);
        if (n < 0) fail("send");
        gone += n;
    }
}

int main(int argc, char **argv) {
    if (argc != 6 || (strcmp(argv[1], "receive") != 0 && strcmp(argv[1], "send") != 0)) {
        fprintf(stderr, "usage: %s receive|send CORE HOST PORT BYTES\n", argv[0]);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[2]), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[4]))};
    if (inet_pton(AF_INET, argv[3], &place.sin_addr) != 1) fail("inet_pton");
    const int64_t total = atoll(argv[5]);
    if (total <= WARM_UP) {
        fprintf(stderr, "BYTES is more than %d\n", WARM_UP);
        return 2;
    }
    if (argv[1][0] == 'r')
        receive(&place, total);
    else
        transmit(&place, total);
    return 0;
}
