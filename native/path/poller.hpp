// Sleeping until one of several sockets can be read or a moment has come.
//
// The moment costs a system call only when it moves closer than the kernel's timer is set to: one that moves away, as
// deadlines do with every datagram, is left to ring early and be found wanting. A timer given to the sleeping call itself
// would be set and cleared for every datagram, which costs more than the datagram.
#pragma once

#include "ring/memory.hpp"
#include "system/clock.hpp"

namespace ringcast {

class Poller {
public:
    // Throws OsRefused.
    Poller();

    void add(int socket);
    // Not after that moment does the next `ready` return.
    void not_after(i64 at_ns);
    // Calls `readable(socket)` for each that is. Sleeps no longer than a slice of time, and not at all if so asked.
    template <typename Readable>
    void ready(bool sleep, Readable&& readable) {
        int found[kMost];
        const int n = collect(sleep, found);
        for (int i = 0; i < n; ++i) readable(found[i]);
    }
    // How often the kernel's timer was set.
    u64 settings() const { return settings_; }

private:
    static constexpr int kMost = 16;

    int collect(bool sleep, int* found);

    Descriptor epoll_, timer_;
    i64 set_to_ns_ = kForever;
    u64 settings_ = 0;
};

}  // namespace ringcast
