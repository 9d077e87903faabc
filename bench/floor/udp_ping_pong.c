/* How long does the kernel take for a 64-byte datagram on loopback, there and back, both sides blocking?
 * No loss handling: loopback drops only when a receive buffer is full, and here at most one datagram is in flight. */
#include "ping_pong.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static int near_end, far_end;

static void meet(int from, int to) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    if (getsockname(to, (struct sockaddr *)&address, &length) != 0) fail("getsockname");
    if (connect(from, (struct sockaddr *)&address, length) != 0) fail("connect");
}

static int open_socket(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0) fail("socket");
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("bind");
    return fd;
}

static void pong(long count) {
    char data[PAYLOAD_BYTES];
    for (long i = 0; i < count; ++i) {
        if (recv(far_end, data, sizeof data, 0) != sizeof data) fail("recv");
        if (send(far_end, data, sizeof data, 0) != sizeof data) fail("send");
    }
}

static void ping(void) {
    char data[PAYLOAD_BYTES] = {0};
    if (send(near_end, data, sizeof data, 0) != sizeof data) fail("send");
    if (recv(near_end, data, sizeof data, 0) != sizeof data) fail("recv");
}

int main(int argc, char **argv) {
    near_end = open_socket();
    far_end = open_socket();
    meet(near_end, far_end);
    meet(far_end, near_end);
    return play(argc, argv);
}
