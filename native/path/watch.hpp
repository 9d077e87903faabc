// Waiting for any of many idle rings to be written, beside a thread that waits on a socket.
//
//   rings 0..62 -- a thread asleep on their doorbells --.
//   rings 63..  -- another one --------------------------+--> on_news, and `written` tells which
//
// Each thread sleeps on doorbells as any reader does: the writer of an idle ring wakes it once. A ring is looked at
// until it was written and then forgotten; whoever wants to know of the next time says so again. Invariant: a ring that
// is not written costs nothing but its share in one wake-up per slice of time, however many there are. Threads are
// added as rings are; they are fewer rings each than the kernel can wait for at once, because one that is written costs
// its thread a look at all of its rings. Without futex_waitv (before Linux 5.16) each thread looks every millisecond.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ring/cursor.hpp"

namespace ringcast {

class Watch {
public:
    static constexpr std::size_t kRingsPerThread = 63;

    struct Ring {
        RingPtr ring;
        std::shared_ptr<Mapping> bell;
        u64 tail;  // as the one who waits has seen it
    };

    // `on_news` is called on a thread of the watch.
    explicit Watch(std::function<void()> on_news);
    ~Watch();

    // ---- one thread
    // Wait for it under that key, which is not waited for now.
    void add(u64 key, Ring ring);
    void remove(u64 key);
    // Those written since the last call; they are forgotten.
    std::vector<u64> written();
    void close();

    std::size_t threads() const { return posts_.size(); }
    // How often a thread has looked at its rings.
    u64 looks() const { return looks_.load(std::memory_order_relaxed); }

private:
    class Post;

    std::function<void()> on_news_;
    std::vector<std::unique_ptr<Post>> posts_;
    std::unordered_map<u64, Post*> post_of_;
    std::atomic<u64> looks_{0};
    std::mutex mutex_;
    std::vector<u64> written_;
};

}  // namespace ringcast
