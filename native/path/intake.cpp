#include "path/intake.hpp"

#include <netinet/in.h>

namespace ringcast {

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
