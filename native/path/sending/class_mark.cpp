#include "path/sending/class_mark.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>

#include <cstring>

#include "ring/memory.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace ringcast {
namespace {

struct Marking {
    int dscp;
    int queue;
};
// By class; the first is "as the channel".
constexpr Marking kMarkings[] = {{0, 0}, {10, 2}, {0, 0}, {36, 6}, {44, 6}};

template <typename Value>
void put(msghdr& message, int level, int type, Value value) {
    auto* const c = reinterpret_cast<cmsghdr*>(static_cast<std::byte*>(message.msg_control) + message.msg_controllen);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
    message.msg_controllen += CMSG_SPACE(sizeof value);
}

// Kernels before 6.14 refuse a call with a priority beside it.
bool takes_priority() {
    static const bool takes = [] {
        const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof own;
        auto* const at = reinterpret_cast<sockaddr*>(&own);
        if (bind(socket.get(), at, length) != 0 || getsockname(socket.get(), at, &length) != 0) return false;
        alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_name = at;
        message.msg_namelen = length;
        message.msg_control = control;
        put(message, SOL_SOCKET, SO_PRIORITY, 6);
        return sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    }();
    return takes;
}

}  // namespace

int code_point(u32 message_class) { return kMarkings[message_class < std::size(kMarkings) ? message_class : 0].dscp; }

void StreamMark::set(int octet, int queue) const {
    if (family_ == AF_INET6)
        setsockopt(socket_, IPPROTO_IPV6, IPV6_TCLASS, &octet, sizeof octet);
    else
        setsockopt(socket_, IPPROTO_IP, IP_TOS, &octet, sizeof octet);
    setsockopt(socket_, SOL_SOCKET, SO_PRIORITY, &queue, sizeof queue);  // after the octet, which sets it for IPv4
}

void StreamMark::become(u32 flags) {
    const u32 wanted = class_of(flags) < std::size(kMarkings) ? class_of(flags) : 0;
    if (wanted == now_) return;
    constexpr u32 kHigh = 3;
    if (wanted < kHigh || wanted < now_) {
        int unsent = 0;
        if (ioctl(socket_, SIOCOUTQNSD, &unsent) == 0 && unsent > 0) return;  // it would lose its mark on the way
    }
    if (now_ == 0) {
        socklen_t length = sizeof(int);
        getsockopt(socket_, SOL_SOCKET, SO_DOMAIN, &family_, &length);
        length = sizeof own_.octet;
        if (family_ == AF_INET6)
            getsockopt(socket_, IPPROTO_IPV6, IPV6_TCLASS, &own_.octet, &length);
        else
            getsockopt(socket_, IPPROTO_IP, IP_TOS, &own_.octet, &length);
        length = sizeof own_.queue;
        getsockopt(socket_, SOL_SOCKET, SO_PRIORITY, &own_.queue, &length);
    }
    now_ = wanted;
    const Marking marking = kMarkings[wanted];
    if (wanted == 0)
        set(own_.octet, own_.queue);
    else
        set(marking.dscp << 2, marking.queue);
}

void ClassMark::attach(msghdr& message, int family, u32 flags, std::uint16_t segment) {
    std::memset(control_, 0, sizeof control_);
    message.msg_control = control_;
    message.msg_controllen = 0;
    const u32 index = class_of(flags);
    const Marking marking = kMarkings[index < std::size(kMarkings) ? index : 0];
    const int octet = marking.dscp << 2;
    if (segment != 0) put(message, SOL_UDP, UDP_SEGMENT, segment);
    if (family == AF_INET) {
        put(message, IPPROTO_IP, IP_TOS, octet);  // and with it the band, which for these code points is the right one
    } else {
        put(message, IPPROTO_IPV6, IPV6_TCLASS, octet);
        if (takes_priority()) put(message, SOL_SOCKET, SO_PRIORITY, marking.queue);
    }
}

}  // namespace ringcast
