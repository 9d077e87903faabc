#include "system/watched_sleep.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "ring/failure.hpp"
#include "system/clock.hpp"
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
        rouse();
    }

    // Have it look now, and from then on as often as those that are listed need it.
    void rouse() {
        bell_.fetch_add(1);
        futex::wake_all(bell_);
    }

private:
    [[noreturn]] void run() {
        for (;;) {
            const u32 bell = bell_.load();
            if (const i64 pause_ns = look(); pause_ns != kForever) {
                futex::wait(bell_, bell, pause_ns);
            } else {
                const futex::SeenWord mine{&bell_, bell};
                futex::wait_unbounded({&mine, 1});
            }
        }
    }

    // How long until the next look; for ever while nobody is listed.
    i64 look() {
        const std::lock_guard lock(mutex_);
        // Each place once, since none of it is in a cache by then.
        bool quick = false;
        std::erase_if(places_, [&](const std::shared_ptr<Place>& place) {
            if (place.use_count() == 1 || forgets(*place)) return true;
            quick = quick || !place->quiet.load();
            return false;
        });
        if (places_.empty()) return kForever;
        return quick ? WatchedSleep::kLookNs : futex::kSliceNs;
    }

    // Wake one that stayed asleep since the look before, if it is to be woken.
    static void disturb(Place& place, u32 turns) {
        const std::lock_guard lock(place.asking);
        if (place.turns.load() != turns) return;
        if (place.missed != nullptr && !place.missed(place.sleeper)) return;
        // Its memory may be gone by now; the kernel says so, and nothing happens.
        futex::wake_unbounded(*place.word.load(std::memory_order_relaxed));
    }

    static bool forgets(Place& place) {
        const u32 turns = place.turns.load();
        const bool asleep = turns % 2 != 0;
        if (turns != place.seen) {
            place.seen = turns;
            place.unchanged = 0;
            if (asleep && place.quiet.load()) disturb(place, turns);
            return false;
        }
        ++place.unchanged;
        if (asleep) {
            disturb(place, turns);
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

// Never destroyed: its thread ends with the process. In a child after fork the thread is missing, and its lock may be
// held for ever; so the child makes another. False if that cannot be, or another thread is here; next time.
template <typename Use>
bool with_watch(Use&& use) {
    static InheritingMutex mutex;
    static Watch* watch = nullptr;
    static pid_t process = 0;
    if (!mutex.try_lock()) return false;
    bool used = true;
    try {
        if (process != getpid()) {
            watch = new Watch;
            process = getpid();
        }
        use(*watch);
    } catch (const OsRefused&) {
        used = false;
    }
    mutex.unlock();
    return used;
}

}  // namespace

WatchedSleep::WatchedSleep() : place_(std::make_shared<Place>()) {}

// The watch may be in a longer pause than a quick sleeper needs.
bool WatchedSleep::make_quick() {
    const Missed before = place_->missed;
    make_quiet(nullptr, place_->sleeper);
    if (with_watch([](Watch& watch) { watch.rouse(); })) return true;
    make_quiet(before, place_->sleeper);
    return false;
}

void WatchedSleep::make_quiet(Missed missed, void* sleeper) {
    const std::lock_guard lock(place_->asking);
    place_->missed = missed;
    place_->sleeper = sleeper;
    place_->quiet.store(missed != nullptr);
}

bool WatchedSleep::enlist(const std::shared_ptr<Place>& place) {
    return with_watch([&](Watch& watch) { watch.add(place); });
}

}  // namespace ringcast
