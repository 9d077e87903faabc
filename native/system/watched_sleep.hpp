// Sleeps on futexes that end without a timer for each of them.
//
// Arming a timer and taking it back costs 0.4 us a sleep, as much as everything else that a reader does for a message. So
// readers to whom messages come quickly sleep without one, and one thread of the process looks after all of them: whom it
// finds in the same sleep at two looks, it wakes. Readers to whom nothing comes would be woken for nothing, each of them four
// times a second. So that thread looks for them whether they missed anything, and wakes those that did. It sleeps itself
// while nobody is listed.
//
// Invariant: whoever sleeps between `begin` and `end` is woken within two looks, and again at every further one; between
// `begin_quiet` and `end_quiet`, within a slice after there is something that nobody woke it for. So a signal that came just
// before the sleep (quiet sleepers must have none to expect), a publisher killed before its wake and a hostile co-reader cost
// no more than that.
#pragma once

#include <memory>
#include <mutex>

#include "system/futex.hpp"
#include "system/inheriting_mutex.hpp"

namespace ringcast {

class WatchedSleep {
public:
    static constexpr i64 kLookNs = futex::kSliceNs / 2;

    WatchedSleep();

    // Whether the sleeper should be awake. Called by the watching thread, during the sleep only.
    using Missed = bool (*)(void* sleeper);

    // From now until `end` the caller sleeps on `word`. False: it is not watched, and needs a limit of its own.
    bool begin(const std::atomic<u32>& word) {
        if (place_->missed != nullptr && !make_quick()) [[unlikely]]
            return false;
        return lie_down(word);
    }
    void end() { place_->turns.store(++turns_, std::memory_order_release); }

    // The same for one to whom nothing comes.
    bool begin_quiet(const std::atomic<u32>& word, Missed missed, void* sleeper) {
        make_quiet(missed, sleeper);
        return lie_down(word);
    }
    // When it returns nobody asks `missed` any more.
    void end_quiet() {
        const std::lock_guard lock(place_->asking);
        end();
    }

    struct Place {
        std::atomic<u32> turns{0};  // odd while asleep
        std::atomic<const std::atomic<u32>*> word{nullptr};
        std::atomic<bool> listed{false};
        InheritingMutex asking;  // `missed` is called with it, and who slept quietly gets up with it
        Missed missed = nullptr;
        void* sleeper = nullptr;
        std::atomic<bool> quiet{false};  // whether there is `missed`
        // ---- the watching thread's own
        u32 seen = 0;
        u32 unchanged = 0;  // looks since it changed
    };

private:
    bool lie_down(const std::atomic<u32>& word) {
        place_->word.store(&word, std::memory_order_relaxed);
        // Sequentially consistent against the thread that takes the place off its list and then looks at the turns.
        place_->turns.store(++turns_);
        if (place_->listed.load()) [[likely]]
            return true;
        if (enlist(place_)) return true;
        end();
        return false;
    }
    bool make_quick();
    void make_quiet(Missed missed, void* sleeper);
    static bool enlist(const std::shared_ptr<Place>& place);

    std::shared_ptr<Place> place_;
    u32 turns_ = 0;
};

}  // namespace ringcast
