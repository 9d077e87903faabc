// Time of day in nanoseconds UTC, and steady time for waiting.
#pragma once

#include <ctime>

#include "ring/layout.hpp"

namespace ringcast {

inline i64 clock_ns(clockid_t id) {
    timespec t;
    clock_gettime(id, &t);
    return i64{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
// How far this process's time of day is ahead of the machine's: for tests of nodes whose clocks disagree, which cannot be
// had otherwise (a Linux time namespace leaves CLOCK_REALTIME alone). Set before there are threads.
inline i64 utc_offset_ns = 0;
inline i64 utc_ns() { return clock_ns(CLOCK_REALTIME) + utc_offset_ns; }
inline i64 steady_ns() { return clock_ns(CLOCK_MONOTONIC); }

inline constexpr i64 kForever = INT64_MAX;

inline void relax_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace ringcast
