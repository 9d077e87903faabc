#include "path/intake.hpp"

#include <netinet/in.h>

#include <cstring>

#include "system/clock.hpp"

namespace ringcast {

void stamp_datagrams(int socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

i64 stamped_ns(const msghdr& header) {
    for (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(const_cast<msghdr*>(&header), const_cast<cmsghdr*>(c))) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS || c->cmsg_len < CMSG_LEN(sizeof(timespec))) continue;
        timespec t;
        std::memcpy(&t, CMSG_DATA(c), sizeof t);
        return utc_of(i64{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
    }
    return 0;
}

void wake_receiver(int socket) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
    if (auto* v4 = reinterpret_cast<sockaddr_in*>(&address); address.ss_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (auto* v6 = reinterpret_cast<sockaddr_in6*>(&address); address.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
        v6->sin6_addr = in6addr_loopback;
    sendto(socket, nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), length);
}

}  // namespace ringcast
