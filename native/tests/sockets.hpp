// Sockets for tests: two that are connected, one on loopback, and descriptors that go with a packet.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <initializer_list>

#include "ring/memory.hpp"
#include "tests/check.hpp"

namespace ringcast::tests {

struct SocketPair {
    explicit SocketPair(int kind) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, pair) == 0);
        near = Descriptor(pair[0]);
        far = Descriptor(pair[1]);
    }
    Descriptor near, far;
};

inline Descriptor loopback() {
    Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    return fd;
}

inline void send_packet(const Descriptor& socket, const void* bytes, std::size_t length, std::initializer_list<int> fds) {
    iovec iov{const_cast<void*>(bytes), length};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    if (const std::size_t size = fds.size() * sizeof(int); size != 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(size);
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(size);
        std::memcpy(CMSG_DATA(c), fds.begin(), size);
    }
    CHECK_EQ(sendmsg(socket.get(), &message, 0), static_cast<ssize_t>(length));
}

}  // namespace ringcast::tests
