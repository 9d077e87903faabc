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
// How this process's time of day differs from the machine's: for tests of nodes whose clocks disagree, which cannot be
// had otherwise (a Linux time namespace leaves CLOCK_REALTIME alone). Set before there are threads. Every process that is
// given the same numbers has the same clock.
struct ClockApart {
    bool is = false;
    i64 ahead_ns = 0;
    double drift = 0;  // seconds a second, from a day that all processes agree on
    i64 step_ns = 0, step_at_ns = 0;

    i64 of(i64 real_ns) const {
        constexpr i64 kDay = 1'700'000'000'000'000'000;
        const i64 drifted = static_cast<i64>(drift * static_cast<double>(real_ns - kDay));
        return real_ns + ahead_ns + drifted + (step_ns != 0 && real_ns >= step_at_ns ? step_ns : 0);
    }
};
inline ClockApart clock_apart;

// What the kernel stamped, as this process would have.
inline i64 utc_of(i64 real_ns) { return clock_apart.is ? clock_apart.of(real_ns) : real_ns; }
inline i64 utc_ns() { return utc_of(clock_ns(CLOCK_REALTIME)); }
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
