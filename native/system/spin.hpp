// Whether to spin before a sleep, and for how long.
//
// Being woken on a core that has gone idle takes 5 to 30 us, and on a virtual machine more. Whoever spins for as long as
// that and then sleeps, waits at most twice as long as if it had known what comes. But spinning is of no use where the
// other side needs this very core, or where nothing comes that soon. So it is tried, ever more seldom where it fails, and
// kept up only while most tries succeed; one during which the kernel gave this core to somebody else has failed. A loop that
// stood still although the kernel did not switch was stopped by a hypervisor, many times a second, which says nothing of
// the other side.
//
// `Spin` decides and is told the outcome; it has no clock. `spin` is the loop around it.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "system/clock.hpp"

namespace ringcast {

class Spin {
public:
    static constexpr i64 kLeastNs = 2'000;
    static constexpr i64 kMostNs = 100'000;
    // The thread may not have been running in between: no iteration takes that long.
    static constexpr i64 kInterruptedNs = 15'000;

    // `wake_ns`: what a wake-up takes here, until that is measured.
    explicit Spin(i64 wake_ns) : wake_ns_(wake_ns) {}

    // Once before each sleep: for how long to spin, mostly 0.
    i64 window() {
        if (credit_ == 0 && ++sleeps_ < next_try_) [[likely]]
            return 0;
        return std::clamp(2 * wake_ns_, kLeastNs, kMostNs);
    }
    void succeeded() {
        credit_ = std::min(kMostCredit, credit_ + 1);
        pause_ = kFirstPause;
    }
    void failed() {
        credit_ -= std::min(credit_, kPenalty);
        if (credit_ == 0) rest();
    }
    void interrupted() {
        credit_ = 0;
        rest();
    }
    // Whether the kernel gave this core to somebody else since this was asked last. `switches`: how often it ever did.
    bool was_switched(long switches) { return std::exchange(switches_, switches) != switches; }
    // How long after it was sent a message was received by whoever had to be woken for it.
    void woken_after(i64 ns) { wake_ns_ += (std::clamp<i64>(ns, 0, kMostNs) - wake_ns_) / 8; }

private:
    static constexpr u32 kMostCredit = 8, kPenalty = 2;
    static constexpr u32 kFirstPause = 16, kLongestPause = 8192;

    void rest() {
        sleeps_ = 0;
        next_try_ = pause_;
        pause_ = std::min(pause_ * 2, kLongestPause);
    }

    i64 wake_ns_;
    u32 credit_ = 0;
    u32 sleeps_ = 0;
    u32 next_try_ = kFirstPause;
    u32 pause_ = kFirstPause;
    long switches_ = 0;
};

// How often this thread had to leave its core. A system call, so it is asked only when a loop stood still.
inline long involuntary_switches() {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nivcsw;
}

// At most half of the cores spin for one process.
inline std::atomic<unsigned> spinning_threads{0};
inline unsigned most_spinning() {
    static const unsigned most = std::thread::hardware_concurrency() / 2;
    return most;
}

class SpinPlace {
public:
    SpinPlace() : has_(spinning_threads.fetch_add(1, std::memory_order_relaxed) < most_spinning()) {}
    ~SpinPlace() { spinning_threads.fetch_sub(1, std::memory_order_relaxed); }
    SpinPlace(const SpinPlace&) = delete;
    SpinPlace& operator=(const SpinPlace&) = delete;
    explicit operator bool() const { return has_; }

private:
    const bool has_;
};

// Whether `ready` became true. `window_ns` is what `state.window()` said.
template <typename Ready>
bool spin(Spin& state, i64 window_ns, Ready&& ready) {
    if (window_ns == 0) [[likely]]
        return false;
    const SpinPlace place;
    if (!place) {
        state.failed();
        return false;
    }
    const i64 begun = steady_ns();
    bool came = false;
    for (i64 last = begun, now = begun;; last = now) {
        came = ready();
        relax_cpu();
        now = steady_ns();
        if (now - last > Spin::kInterruptedNs && state.was_switched(involuntary_switches())) {
            state.interrupted();
            break;
        }
        if (came) {
            state.succeeded();
            break;
        }
        if (now - begun >= window_ns) {
            state.failed();
            break;
        }
    }
    return came;
}

}  // namespace ringcast
