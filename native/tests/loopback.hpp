// Both ends of a path on loopback, and readers of what arrives.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include "path/receiving/delivery.hpp"
#include "path/receiving/streams.hpp"
#include "path/sending/pump.hpp"
#include "tests/rig.hpp"

namespace ringcast::tests {

inline constexpr u64 kKey = 42;
inline constexpr std::uint16_t kChunk = 1400;
inline constexpr std::uint16_t kSmallChunk = 200;

struct Wire {
    Wire() : receiver(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), sender(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        CHECK(bind(receiver.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
        CHECK(getsockname(receiver.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
        CHECK(connect(sender.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    }
    Descriptor receiver, sender;
};

inline Descriptor copy_of(const Descriptor& fd) { return Descriptor(dup(fd.get())); }

inline ChannelSpec spec(u64 every = 1) {
    ChannelSpec s;
    s.key = kKey;
    s.depth = 64;
    s.capacity_bytes = 1 << 20;
    s.every = every;
    return s;
}

template <typename Condition>
void until(Condition&& condition) {
    for (const i64 end = steady_ns() + 30'000'000'000; !condition();) {
        CHECK(steady_ns() < end);
        usleep(200);
    }
}

inline std::unique_ptr<Cursor> reader_of(Mirror& mirror, bool reliable = false) {
    auto view = std::make_shared<const RingView>(mirror.ring().ring_fd(), mirror.ring().geometry(), mirror.ring().incarnation());
    return std::make_unique<Cursor>(std::move(view), map_plain(mirror.ring().bell_fd(), kPage, Access::write), CursorSpec{.start = kEarliest, .reliable = reliable, .owner = this_process()});
}

}  // namespace ringcast::tests
