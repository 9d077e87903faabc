// Waiting for any of several idle rings to be written, beside a thread that waits on a socket.
//
// A thread asleep on the rings' doorbells, as any reader is: the writer of an idle ring wakes it once, and it calls
// `on_news`. A ring is looked at until it was written and then forgotten; whoever wants to know of the next time says
// so again. Beyond what the kernel can wait for at once, rings are looked at every 5 ms.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ring/cursor.hpp"

namespace ringcast {

class Watch {
public:
    explicit Watch(std::function<void()> on_news);
    ~Watch();

    struct Ring {
        RingPtr ring;
        std::shared_ptr<Mapping> bell;
        u64 tail;  // as the one who waits has seen it
    };
    // Instead of those told before.
    void wait_for(std::vector<Ring> rings);
    void close();

private:
    void run();
    bool look();

    std::function<void()> on_news_;
    std::mutex mutex_;
    std::vector<Ring> wanted_;
    std::atomic<u32> changed_{0};
    std::atomic<bool> closing_{false};
    std::thread thread_;
};

}  // namespace ringcast
