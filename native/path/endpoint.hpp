// A place that datagrams go to: an address and a port, as the socket that sends there wants them.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace ringcast {

struct Endpoint {
    sockaddr_storage address{};
    socklen_t length = 0;

    explicit operator bool() const { return length != 0; }
    const sockaddr* at() const { return reinterpret_cast<const sockaddr*>(&address); }
};

inline int family_of(int socket) {
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    return getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0 ? own.ss_family : AF_UNSPEC;
}

// "192.0.2.1:7417" or "[2001:db8::1]:7417", for a socket of that family; "" is nowhere. Numbers only: nothing here may
// wait for a name server. Throws std::invalid_argument.
inline Endpoint endpoint(const std::string& text, int family) {
    Endpoint out;
    if (text.empty()) return out;
    const auto colon = text.rfind(':');
    if (colon == std::string::npos) throw std::invalid_argument("an address without a port: " + text);
    std::string host = text.substr(0, colon);
    if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
    const auto port = htons(static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1))));
    if (family == AF_INET) {
        auto* v4 = reinterpret_cast<sockaddr_in*>(&out.address);
        v4->sin_family = AF_INET;
        v4->sin_port = port;
        if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1) throw std::invalid_argument("no IPv4 address: " + text);
        out.length = sizeof *v4;
    } else {
        auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.address);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = port;
        if (host.find(':') == std::string::npos) host = "::ffff:" + host;
        if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) != 1) throw std::invalid_argument("no address: " + text);
        out.length = sizeof *v6;
    }
    return out;
}

}  // namespace ringcast
