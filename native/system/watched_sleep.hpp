// Sleeps on futexes that end without a timer for each of them.
//
// Arming a timer and taking it back costs 0.4 us a sleep, as much as everything else that a reader does for a message. So
// readers to whom messages come quickly sleep without one, and one thread of the process looks after all of them: whom it
// finds in the same sleep at two looks, it wakes. That thread sleeps itself while nobody is listed.
//
// Invariant: whoever sleeps between `begin` and `end` is woken within two looks, and again at every further one. So a signal
// that came just before the sleep, a publisher killed before its wake and a hostile co-reader cost no more than that.
#pragma once

#include <memory>

#include "system/futex.hpp"

namespace ringcast {

class WatchedSleep {
public:
    static constexpr i64 kLookNs = futex::kSliceNs / 2;

    WatchedSleep();

    // From now until `end` the caller sleeps on `word`. False: it is not watched, and needs a limit of its own.
    bool begin(const std::atomic<u32>& word) {
        place_->word.store(&word, std::memory_order_relaxed);
        // Sequentially consistent against the thread that takes the place off its list and then looks at the turns.
        place_->turns.store(++turns_);
        if (place_->listed.load()) [[likely]]
            return true;
        if (enlist(place_)) return true;
        end();
        return false;
    }
    void end() { place_->turns.store(++turns_, std::memory_order_release); }

    struct Place {
        std::atomic<u32> turns{0};  // odd while asleep
        std::atomic<const std::atomic<u32>*> word{nullptr};
        std::atomic<bool> listed{false};
        // ---- the watching thread's own
        u32 seen = 0;
        u32 unchanged = 0;  // looks since it changed
    };

private:
    static bool enlist(const std::shared_ptr<Place>& place);

    std::shared_ptr<Place> place_;
    u32 turns_ = 0;
};

}  // namespace ringcast
