#include "system/watched_sleep.hpp"

#include <time.h>
#include <unistd.h>

#include <vector>

#include "ring/failure.hpp"
#include "system/inheriting_mutex.hpp"
#include "system/thread.hpp"

namespace ringcast {
namespace {

using Place = WatchedSleep::Place;

// Who is awake for so many looks is taken off the list until it sleeps again.
constexpr u32 kForgetAfter = 16;

class Watch {
public:
    Watch() : thread_([] {}) { thread_.start("ringcast-sleeps", [this] { run(); }); }

    void add(const std::shared_ptr<Place>& place) {
        {
            const std::lock_guard lock(mutex_);
            place->seen = place->turns.load();
            place->unchanged = 0;
            places_.push_back(place);
            place->listed.store(true);
        }
        bell_.fetch_add(1);
        futex::wake_all(bell_);
    }

private:
    [[noreturn]] void run() {
        for (;;) {
            const u32 bell = bell_.load();
            if (look()) {
                const timespec pause{0, WatchedSleep::kLookNs};
                nanosleep(&pause, nullptr);
            } else {
                const futex::SeenWord mine{&bell_, bell};
                futex::wait_unbounded({&mine, 1});
            }
        }
    }

    // Whether anybody is listed.
    bool look() {
        const std::lock_guard lock(mutex_);
        std::erase_if(places_, [](const std::shared_ptr<Place>& place) { return place.use_count() == 1 || forgets(*place); });
        return !places_.empty();
    }

    static bool forgets(Place& place) {
        const u32 turns = place.turns.load();
        if (turns != place.seen) {
            place.seen = turns;
            place.unchanged = 0;
            return false;
        }
        ++place.unchanged;
        if (turns % 2 != 0) {
            // Its memory may be gone by now; the kernel says so, and nothing happens.
            futex::wake_unbounded(*place.word.load(std::memory_order_relaxed));
            return false;
        }
        if (place.unchanged < kForgetAfter) return false;
        place.listed.store(false);
        if (place.turns.load() == turns) return true;
        place.listed.store(true);
        return false;
    }

    InheritingMutex mutex_;
    std::vector<std::shared_ptr<Place>> places_;
    std::atomic<u32> bell_{0};
    Thread thread_;
};

}  // namespace

WatchedSleep::WatchedSleep() : place_(std::make_shared<Place>()) {}

bool WatchedSleep::enlist(const std::shared_ptr<Place>& place) {
    // Never destroyed: its thread ends with the process. In a child after fork the thread is missing, and its lock may be
    // held for ever; so the child makes another.
    static InheritingMutex mutex;
    static Watch* watch = nullptr;
    static pid_t process = 0;
    if (!mutex.try_lock()) return false;  // another thread enlists; next time
    bool listed = true;
    try {
        if (process != getpid()) {
            watch = new Watch;
            process = getpid();
        }
        watch->add(place);
    } catch (const OsRefused&) {
        listed = false;
    }
    mutex.unlock();
    return listed;
}

}  // namespace ringcast
