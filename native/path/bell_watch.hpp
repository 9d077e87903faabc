// Waiting for a sign on any of many doorbells, beside a thread that waits on a socket: that an idle ring was written, or
// that readers made room in a full one.
//
//   rings 0..62 -- a thread asleep on their doorbells --.
//   rings 63..  -- another one --------------------------+--> on_news, and `came` tells which
//
// Each thread sleeps on doorbells as any reader or writer does: whoever gives the sign wakes it once. A ring is looked at
// until its sign came and then forgotten; whoever wants to know of the next time says so again. Invariant: a ring that
// gives no sign costs nothing but its share in one wake-up per slice of time, however many there are. Threads are
// added as rings are; they are fewer rings each than the kernel can wait for at once, because one that is written costs
// its thread a look at all of its rings. Without futex_waitv (before Linux 5.16) each thread looks every millisecond.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ring/cursor.hpp"
#include "system/inheriting_mutex.hpp"

namespace ringcast {

class BellWatch {
public:
    static constexpr std::size_t kRingsPerThread = 63;

    struct Awaited {
        std::shared_ptr<const void> keeps;  // what the two words lie in
        const std::atomic<u32>* bell;
        std::atomic<u32>* waiting;
        std::function<bool()> came;  // asked after `waiting` is set, against whoever looks at it after giving the sign
    };
    // A ring is written; `tail` is as the one who waits has seen it.
    static Awaited written(RingPtr ring, std::shared_ptr<const Mapping> bell, u64 tail);
    // Reliable readers move; `seen` is the space bell before the one who waits looked for room.
    static Awaited room(std::shared_ptr<const void> keeps, Doorbell& bell, u32 seen);

    // `on_news` is called on a thread of the watch.
    explicit BellWatch(std::function<void()> on_news);
    ~BellWatch();

    // ---- any thread
    // Threads for so many at once. Throws OsRefused.
    void make_room(std::size_t rings);
    std::size_t threads() const;
    // How often a thread has looked at its rings.
    u64 looks() const { return looks_.load(std::memory_order_relaxed); }

    // ---- one thread
    // Wait for it under that key, which is not waited for now. Where there is no room for it, throws OsRefused.
    void add(u64 key, Awaited awaited);
    void remove(u64 key);
    // Those whose sign came since the last call; they are forgotten.
    std::vector<u64> came();
    void close();

private:
    class Post;

    std::function<void()> on_news_;
    mutable InheritingMutex posts_mutex_;
    std::vector<std::unique_ptr<Post>> posts_;
    std::unordered_map<u64, Post*> post_of_;
    std::atomic<u64> looks_{0};
    InheritingMutex mutex_;
    std::vector<u64> came_;
};

}  // namespace ringcast
