// How long a bin that does not fill is kept.
#pragma once

#include <algorithm>

#include "recovery/tuning.hpp"

namespace ringcast::recovery {

// As long as its packets take to come, cut by `flush_ns` and by a third of the deadline: the rest is for the way and
// for the one who waits. With the gap unknown, as before the second packet, a default that suits slow streams.
inline i64 flush_after_ns(const Tuning& tuning, i64 gap_ns) {
    constexpr i64 kGapUnknown = 20 * kMs;
    // On a fast stream a bin is full before a timer is worth its wake-up.
    constexpr i64 kLeast = 4 * kMs;
    i64 wait = std::max(kLeast, static_cast<i64>(tuning.r) * tuning.stagger * (gap_ns > 0 ? gap_ns : kGapUnknown));
    if (tuning.flush_ns > 0) wait = std::min(wait, tuning.flush_ns);
    if (tuning.deadline_ns > 0) wait = std::min(wait, tuning.deadline_ns / 3);
    return wait;
}

}  // namespace ringcast::recovery
