// Looking out for what was announced, without sleeping: whoever announced it says that it comes within a moment.
//
// Where an idle core sleeps deeply it takes long to wake, and looking out is quicker; where it does not, sleeping is, because a
// core that is at work has to be interrupted first. So both are tried, what came is measured, and the quicker one is used.
//
// Nobody has to keep his word, and others may need the core. So a look-out takes at most a twentieth of the time between two
// announcements, ends when somebody else is given this core, and is left out ever more often while nothing comes of it.
#pragma once

#include <array>
#include <utility>

#include "system/spin.hpp"

namespace ringcast {

class LookOut {
public:
    static constexpr i64 kMostNs = 500'000;
    static constexpr i64 kShare = 20;
    static constexpr i64 kMostRestNs = 150'000;

    // For how long to look out for what is announced now; 0 is to sleep.
    i64 window(i64 now_ns) {
        const i64 since = now_ns - std::exchange(announced_ns_, now_ns);
        looks_ = rest_ == 0 && chosen();
        if (rest_ > 0) --rest_;
        return looks_ ? std::clamp<i64>(since / kShare, 0, kMostNs) : 0;
    }
    void succeeded() { pause_ = 0; }
    // Once may be bad luck.
    void failed() {
        rest_ = pause_;
        pause_ = std::clamp(pause_ * 2, 1u, kLongestPause);
    }
    // How long after it was sent what was announced came.
    void came_after(i64 ns) {
        i64& mean = mean_ns_[looks_];
        ns = std::clamp<i64>(ns, 1, 1'000'000'000);
        // One that took very long says little about the others.
        mean = mean == 0 ? ns : mean + std::clamp(ns - mean, -kMostNews, kMostNews) / 4;
    }

    // Until when to look out for the rest of what has begun to come now.
    i64 rest_until(i64 now_ns) {
        const i64 since = now_ns - std::exchange(begun_ns_, now_ns);
        return now_ns + std::clamp<i64>(since / kShare, 0, kMostRestNs);
    }

private:
    static constexpr u32 kLongestPause = 256;
    static constexpr u32 kFirst = 8, kAgain = 16;
    static constexpr i64 kMostNews = 50'000;

    // Both in turn at first, then the quicker one, and the other now and then: things change.
    bool chosen() {
        if (++count_ <= kFirst) return count_ % 2 != 0;
        const bool better = mean_ns_[1] <= mean_ns_[0];
        return count_ % kAgain == 0 ? !better : better;
    }

    i64 announced_ns_ = 0, begun_ns_ = 0;
    std::array<i64, 2> mean_ns_{};  // asleep, looking out
    u32 count_ = 0;
    u32 rest_ = 0;
    u32 pause_ = 0;
    bool looks_ = false;
};

// Whether `ready` became true, until that moment. Ends earlier when somebody else was given this core; interrupts take less
// time, also on a virtual machine.
template <typename Ready>
bool look_until(i64 until_steady_ns, Ready&& ready) {
    constexpr i64 kInterruptedNs = 60'000;
    const SpinPlace place;
    if (!place) return false;
    for (i64 now = steady_ns(), last = now;;) {
        // One look more after an interruption: it may have been the very message that is looked for.
        if (ready()) return true;
        if (now - last > kInterruptedNs || now >= until_steady_ns) return false;
        relax_cpu();
        last = now;
        now = steady_ns();
    }
}

}  // namespace ringcast
